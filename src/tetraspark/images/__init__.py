"""Container images: pinned sources, verified files, rendered Dockerfiles, build contexts."""
