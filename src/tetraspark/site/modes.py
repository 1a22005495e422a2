"""Which sections and keys a site uses, by its kind, its weights mode and its topology."""

from collections.abc import Iterator

from tetraspark.site.collectives import Collectives
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, nodes_of, table_at, value_at

FLEET_SECTIONS = (
    "image", "weights", "fabric", "ssh", "speculative", "prefill_split", "engram",
    "startup",
)  # fmt: skip
FLEET_REQUIRED = ("image", "weights", "fabric")
FLEET_NODE_KEYS = ("host", "ssh_host", "user", "devices", "nfs_server")
FLEET_ENGINE_KEYS = ("head_mem_fraction",)
COLLECTIVES_KEYS = tuple(key for key in Collectives.model_fields if key != "transport")
DOCKERFILE_KEYS = ("build_args", "pip_index")
NFS_KEYS = ("nfs_server", "nfs_export", "nfs_volume", "nfs_clients")


def unused(document: Document) -> Iterator[Finding]:
    """Find keys that the chosen kind, weights mode or topology does not read."""
    if document.get("kind") == "local":
        paths: list[KeyPath] = [(name,) for name in FLEET_SECTIONS]
        paths += [("engine", key) for key in FLEET_ENGINE_KEYS]
        paths += [("nodes", i, key) for i, node in nodes_of(document) for key in FLEET_NODE_KEYS]
        yield from _set_but(document, paths, "`kind`", "local", "fleet")
    weights = table_at(document, "weights")
    mode = weights.get("mode")
    if mode in ("local", "copy"):
        paths = [("weights", key) for key in NFS_KEYS]
        paths += [("nodes", i, "nfs_server") for i, _ in nodes_of(document)]
        yield from _set_but(document, paths, "`weights.mode`", mode, "nfs")
    transport = table_at(document, "collectives").get("transport")
    if transport == "off":
        paths = [("collectives", key) for key in COLLECTIVES_KEYS]
        yield from _set_but(document, paths, "`collectives.transport`", transport, "shm")
    if transport == "shm":
        paths = [("collectives", "min_lanes"), ("collectives", "ring_plan")]
        yield from _set_but(document, paths, "`collectives.transport`", transport, "verbs")
    if transport == "verbs":
        paths = [("collectives", "lanes")]
        yield from _set_but(document, paths, "`collectives.transport`", transport, "shm")
    if transport == "shm" and document.get("kind") == "fleet":
        path: KeyPath = ("collectives", "transport")
        wanted = "a transport that reaches other hosts"
        yield Finding(path, 'transport = "shm" in a fleet', wanted, 'set transport = "verbs"')
    image = table_at(document, "image")
    if image and "dockerfile" not in image:
        for key in DOCKERFILE_KEYS:
            if key in image:
                seen = f"`{key}` is set but `image.dockerfile` is not"
                wanted = "keys that the recipe's own Dockerfile uses: it takes no arguments"
                yield Finding(("image", key), seen, wanted, "remove it or name a `dockerfile`")
    topology = table_at(document, "fabric").get("topology")
    if topology in ("switch", "pair"):
        paths = [("fabric", "ring"), ("collectives", "ring_plan")]
        yield from _set_but(document, paths, "`fabric.topology`", topology, "ring")


def _set_but(
    document: Document, paths: list[KeyPath], what: str, value: str, other: str
) -> Iterator[Finding]:
    for path in paths:
        if value_at(document, path) is not None:
            seen = f'`{path[-1]}` is set but {what} is "{value}"'
            key = what.strip("`").rsplit(".", 1)[-1]
            wanted = f'keys that {what} = "{value}" uses'
            yield Finding(path, seen, wanted, f'remove it or set {key} = "{other}"')


def needed(document: Document) -> Iterator[Finding]:
    """Find sections and keys that a fleet cannot do without."""
    if document.get("kind") != "fleet":
        return
    for name in FLEET_REQUIRED:
        if name not in document:
            fix = f"add [{name}], as in sites/four-sparks-switch.toml"
            yield Finding((name,), f"section [{name}] is missing", 'it for kind "fleet"', fix)
    for index, node in nodes_of(document):
        if "host" not in node:
            wanted = "the address other nodes reach it by"
            path: KeyPath = ("nodes", index, "host")
            yield Finding(path, "a fleet node without `host`", wanted, 'add host = "10.0.0.1"')
    yield from _nfs_needed(document)


def _nfs_needed(document: Document) -> Iterator[Finding]:
    weights = table_at(document, "weights")
    workers = nodes_of(document)[1:]
    each = all("nfs_server" in node for _, node in workers)
    if weights.get("mode") == "nfs" and "nfs_server" not in weights and workers and not each:
        wanted = "the server's address, here or on every worker"
        path: KeyPath = ("weights", "nfs_server")
        fix = 'add nfs_server = "10.0.22.1"'
        yield Finding(path, 'mode = "nfs" without `nfs_server`', wanted, fix)
