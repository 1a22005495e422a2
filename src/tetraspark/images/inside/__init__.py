"""Scripts that are copied into images: standard library only, each one file by itself."""
