"""Programs that run on a node, sent over ssh: standard library only, nothing of the package."""
