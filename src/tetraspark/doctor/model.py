"""The checkpoint and the Engram shards of a node, and the volume that workers mount."""

from collections.abc import Callable, Iterator

from tetraspark.doctor.check import Check
from tetraspark.doctor.finding import Finding, of_check
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.paths import engram_folder, model_folder
from tetraspark.engram import shard
from tetraspark.engram.layout import SPLITS
from tetraspark.fleet.facts import Wanted
from tetraspark.site.engines import ENGINES
from tetraspark.site.load import LoadedSite
from tetraspark.weights import checkpoint
from tetraspark.weights.mount import nfs_volume, volume_name
from tetraspark.weights.volume import inspect_words, volume_check

VOLUME = "docker volume"
Judge = Callable[[NodeView], Iterator[Finding]]


def checkpoint_wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the checkpoint's folder, on the nodes that have it themselves."""
    folder = model_folder(loaded, rank)
    return checkpoint.wanted(folder) if folder is not None else Wanted()


def engram_wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the folder of a rank's shards."""
    folder = engram_folder(loaded, rank)
    return shard.wanted(folder, rank, loaded.site.engine.tp) if folder is not None else Wanted()


def _engram(view: NodeView) -> list[Check]:
    site, folder = view.loaded.site, engram_folder(view.loaded, view.rank)
    if folder is None or site.image is None:
        return []
    split = SPLITS[ENGINES[site.image.recipe]]
    return shard.shard_checks(view.node, folder, view.rank, site.engine.tp, view.facts, split)


def checkpoint_judge(id: str) -> Judge:
    """Return the judge of one ID of `weights.checkpoint`."""
    return _judge(lambda view: view.checkpoint, id)


def engram_judge(id: str) -> Judge:
    """Return the judge of one ID of `engram.shard`."""
    return _judge(_engram, id)


def _judge(checks: Callable[[NodeView], list[Check]], id: str) -> Judge:
    def judge(view: NodeView) -> Iterator[Finding]:
        return (of_check(check) for check in checks(view) if check.id == id)

    return judge


def volume_wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the docker volume of the line."""
    return Wanted(commands={VOLUME: inspect_words(volume_name(loaded.site))})


def volume(view: NodeView) -> Iterator[Finding]:
    """Judge the docker volume of the weights: one of earlier settings would be mounted as it is."""
    site = view.loaded.site
    assert site.weights is not None, "the schema asks it of a fleet"
    planned, name = nfs_volume(site, view.rank), volume_name(site)
    yield of_check(volume_check(view.node, planned, name, view.said(VOLUME), site.weights.mode))
