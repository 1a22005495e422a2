"""Folders of a line as its site names them for each node; `~` stays, and is the node's."""

from tetraspark.site.load import LoadedSite
from tetraspark.weights.mount import nfs_volume


def model_folder(loaded: LoadedSite, rank: int) -> str | None:
    """Return the folder a node reads the checkpoint from; None where it mounts it from a server."""
    site = loaded.site
    if site.kind == "local":
        return str(loaded.resolve(site.model.path, "model.path"))
    return None if nfs_volume(site, rank) else site.model.path


def engram_folder(loaded: LoadedSite, rank: int) -> str | None:
    """Return the folder of a node's Engram shards; None for a line without."""
    engram = loaded.site.engram
    if engram is None:
        return None
    return engram.worker_dir if rank and engram.worker_dir else engram.dir
