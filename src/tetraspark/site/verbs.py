"""What must hold in a site whose collectives go over RDMA lanes of our own."""

from collections.abc import Iterator

from tetraspark.site.collectives import TUNED
from tetraspark.site.engines import RELEASE, engine_of
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, is_list, nodes_of, table_at

_TRANSPORT: KeyPath = ("collectives", "transport")
_SEEN = 'transport = "verbs"'


def verbs_findings(document: Document) -> Iterator[Finding]:
    """Find what keeps the lanes from being made, before any node is asked."""
    section = table_at(document, "collectives")
    if section.get("transport") != "verbs":
        return
    if document.get("kind") == "local":
        yield Finding(_TRANSPORT, f"{_SEEN} in a local line", "shm", 'set transport = "shm"')
        return
    yield from _engine(document)
    yield from _cables(document)
    yield from _lanes(document)
    for key in ("max_two_shot_bytes", "two_shot_from"):
        if section.get(key) == TUNED:
            wanted = "a size: `tetraspark tune` measures shared memory and GPUs of one host"
            path: KeyPath = ("collectives", key)
            yield Finding(path, f'{key} = "{TUNED}" with {_SEEN}', wanted, f"{key} = 4194304")


def _engine(document: Document) -> Iterator[Finding]:
    if engine_of(document) not in (RELEASE, None):
        recipe = table_at(document, "image").get("recipe")
        seen, wanted = f'{_SEEN} with recipe "{recipe}"', "the engine its plugin hooks"
        fix = 'set recipe = "release", or transport = "off"'
        yield Finding(_TRANSPORT, seen, wanted, fix, (("image", "recipe"),))


def _cables(document: Document) -> Iterator[Finding]:
    on_ring = table_at(document, "fabric").get("topology") == "ring"
    if on_ring and "ring_plan" not in table_at(document, "collectives"):
        seen = f"{_SEEN} on a ring without `ring_plan`"
        wanted = "the plan that is applied: opposite nodes have lanes only through it"
        fix = (
            'add ring_plan = "ring.json", as `tetraspark ring plan` wrote it, or transport = "off"'
        )
        yield Finding(_TRANSPORT, seen, wanted, fix, (("fabric", "topology"),))


def _lanes(document: Document) -> Iterator[Finding]:
    if "ring_plan" in table_at(document, "collectives"):
        return
    usual = table_at(document, "fabric").get("devices")
    counts = {
        index: len(devices)
        for index, node in nodes_of(document)
        if is_list(devices := node.get("devices", usual))
    }
    if len(set(counts.values())) > 1:
        odd = next(index for index, count in counts.items() if count != counts[0])
        seen = f"{counts[odd]} devices, nodes[0] has {counts[0]}, with {_SEEN}"
        wanted = "as many on every node: device n of each makes lane n"
        yield Finding(("nodes", odd, "devices"), seen, wanted, "name as many", (_TRANSPORT,))
    least, fewest = (
        table_at(document, "collectives").get("min_lanes"),
        min(counts.values(), default=0),
    )
    if isinstance(least, int) and counts and least > fewest:
        seen, wanted = f"min_lanes = {least}, and {fewest} devices", f"0 to {fewest}"
        yield Finding(("collectives", "min_lanes"), seen, wanted, f"min_lanes = {fewest}")
