"""What of a node's disk a rank's container gets to see, beside the model. Pure."""

from tetraspark.fabric.nccl_library import overlays
from tetraspark.fleet.facts import expanded
from tetraspark.site.load import LoadedSite
from tetraspark.site.schema import Site
from tetraspark.weights.mount import bind

ENGRAM = "/engram"


def engram_mount(site: Site, rank: int, home: str) -> tuple[str, ...]:
    """Return docker's words that give a rank its Engram shards, none where there are none."""
    if site.engram is None or site.engram.dir is None:
        return ()
    folder = site.engram.worker_dir if rank and site.engram.worker_dir else site.engram.dir
    return bind(expanded(folder, home), ENGRAM)


def nccl_mount(loaded: LoadedSite, rank: int, home: str) -> tuple[str, ...]:
    """Return docker's words that lay a site's patched libnccl over the image's, none without one.

    The head and the workers alike: one rank with another library is enough for all to wait.
    """
    own = next((one for one in overlays(loaded) if one.rank == rank), None)
    return () if own is None else bind(expanded(own.source, home), own.target)
