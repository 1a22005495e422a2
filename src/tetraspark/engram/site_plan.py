"""The plan of a fleet: what each node packs, from the site and what a probe found. Pure."""

from collections.abc import Collection, Mapping

from tetraspark.engram.layout import SPLITS, Split, Table, read_tables
from tetraspark.engram.manifest import Manifest
from tetraspark.engram.plan import PYTHON, NodePack, PackPlan
from tetraspark.engram.request import Mode, Slice, request, slices
from tetraspark.engram.shard import manifests, wanted
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.site.engines import ENGINES
from tetraspark.site.load import LoadedSite
from tetraspark.weights.mount import MODEL_MOUNT, model_mount, nfs_volume

FOLDER_MOUNT = "/engram"


def site_split(loaded: LoadedSite) -> Split:
    """Return how the engine of a site's image divides the tables. Raises UsageError."""
    image = loaded.site.image
    if image is None:
        where = loaded.origin("kind").where
        fix = "tetraspark pack --local MODEL --out FOLDER --rank R --tp N"
        raise UsageError(Problem(where, "a site without [image]", 'kind = "fleet"', fix))
    return SPLITS[ENGINES[image.recipe]]


def folder_of(loaded: LoadedSite, rank: int) -> str:
    """Return the folder of a rank's shards as the site names it. Raises UsageError for none."""
    engram = loaded.site.engram
    if engram is None or engram.dir is None:
        where, wish = loaded.origin("kind").where, "the folder of the shards on every node"
        raise UsageError(Problem(where, "no `engram.dir`", wish, 'add [engram] dir = "~/engram"'))
    return engram.worker_dir if rank and engram.worker_dir else engram.dir


def site_wanted(loaded: LoadedSite) -> dict[str, Wanted]:
    """Return what to look at on every node, before a plan. Raises UsageError."""
    site_split(loaded)
    tp = len(loaded.site.nodes)
    config = Wanted(files=(_config(loaded),))
    return {
        node.name: wanted(folder_of(loaded, rank), rank, tp) | config
        for rank, node in enumerate(loaded.site.nodes)
    }


def site_plan(
    loaded: LoadedSite,
    facts: Mapping[str, Facts],
    mode: Mode,
    *,
    replace: bool = False,
    only: Collection[str] = (),
) -> PackPlan:
    """Plan for a fleet; `facts` are of all of its nodes that could be looked at.

    Raises UsageError for a site that has no shards or names of no node, RunError without a
    checkpoint.
    """
    split, nodes = site_split(loaded), loaded.site.nodes
    unknown = sorted(set(only) - {node.name for node in nodes})
    if unknown:
        wish = "one of " + ", ".join(node.name for node in nodes)
        raise UsageError(*(Problem("--node", repr(name), wish, "correct it") for name in unknown))
    tables = _tables(loaded, facts)
    planned = [
        _node(
            loaded, rank, facts[node.name], slices(tables, rank, len(nodes), split), mode, replace
        )
        for rank, node in enumerate(nodes)
        if node.name in facts and (not only or node.name in only)
    ]
    return PackPlan(mode, split, tuple(planned))


def _node(
    loaded: LoadedSite,
    rank: int,
    facts: Facts,
    shards: tuple[Slice, ...],
    mode: Mode,
    replace: bool,
) -> NodePack:
    """Plan for one node: its own python3, or the image's where the checkpoint is a volume."""
    site, named = loaded.site, folder_of(loaded, rank)
    folder, volume = facts.expand(named), nfs_volume(loaded.site, rank)
    room = facts.space.get(named)
    known = manifests(named, rank, len(site.nodes), facts)
    seen = {one.name: _there(one, folder, known, facts) for one in shards}
    model, inside = facts.expand(site.model.path), folder
    argv, before = PYTHON, tuple[tuple[str, ...], ...]()
    if volume is not None:
        assert site.image is not None
        model, inside = MODEL_MOUNT, FOLDER_MOUNT
        before = (("docker", "volume", "inspect", volume.name), ("mkdir", "-p", "--", folder))
        argv = (
            *("docker", "run", "--rm", "--interactive", "--network=none", f"--user={facts.uid}"),
            *model_mount(site, rank, facts.home),
            *("--mount", f"type=bind,source={folder},target={FOLDER_MOUNT}"),
            *("--entrypoint", PYTHON[0], site.image.tag, *PYTHON[1:]),
        )
    asked = request(mode, model, inside, shards, replace=replace)
    free = room.free if room else None
    again = ("tetraspark", "pack", "--site", str(loaded.path), "--node", facts.node)
    return NodePack(facts.node, rank, folder, shards, asked, argv, before, seen, free, again)


def _there(one: Slice, folder: str, known: list[Manifest], facts: Facts) -> int:
    """Return the bytes of a shard that are on the node: all, those of its part, or none."""
    if any(found.layer == one.table.layer and found.rows == one.rows for found in known):
        return facts.sizes.get(f"{folder}/{one.name}.bin", 0)
    return facts.sizes.get(f"{folder}/{one.name}.bin.part", 0)


def _config(loaded: LoadedSite) -> str:
    return f"{loaded.site.model.path.rstrip('/')}/config.json"


def _tables(loaded: LoadedSite, facts: Mapping[str, Facts]) -> tuple[Table, ...]:
    """Return the tables of the checkpoint, which is the same wherever it is."""
    path = _config(loaded)
    found, problems = dict[str, tuple[Table, ...]](), []
    for name, one in facts.items():
        text = one.files.get(one.expand(path))
        try:
            if text is not None:
                found[name] = read_tables(text)
        except ValueError as error:
            wish = "the config.json of a checkpoint with Engram tables"
            problems.append(Problem(f"{name} {path}", str(error), wish, "correct model.path"))
    if problems:
        raise RunError(*problems)
    if not found:
        seen = f"on none of {', '.join(facts) or 'the nodes'}"
        wish, fix = "the checkpoint, at least on the head", "correct model.path, or bring it there"
        raise RunError(Problem(path, seen, wish, fix))
    first = next(iter(found))
    for name, tables in found.items():
        if tables != found[first]:
            seen = "its Engram tables are others than those of the config.json on " + first
            fix = "bring the same checkpoint to both"
            raise RunError(Problem(f"{name} {path}", seen, "one checkpoint", fix))
    return found[first]
