"""What must hold between the keys of a site file; each rule takes the document as parsed."""

from collections.abc import Iterator, Mapping
from typing import Any

from tetraspark.site.environment import env_findings, env_warnings
from tetraspark.site.finding import Finding
from tetraspark.site.flags import flag_findings
from tetraspark.site.host import unreachable
from tetraspark.site.keypath import KeyPath, dotted

Document = Mapping[str, Any]

FLEET_SECTIONS = ("image", "weights", "fabric", "ssh", "speculative", "engram", "guards")
FLEET_REQUIRED = ("image", "weights", "fabric")
FLEET_NODE_KEYS = ("host", "ssh_host", "user", "devices", "nfs_server")
FLEET_ENGINE_KEYS = ("head_mem_fraction",)
NFS_KEYS = ("nfs_server", "nfs_export", "nfs_volume", "nfs_clients")

_CANARY_RECIPES = ("canary", "canary-roce")
_RUST_MODE = "SGLANG_RUST_BUILD_MODE"


def cross_check(document: Document) -> list[Finding]:
    """Return every broken rule; a part of the wrong type is left to the schema."""
    rules = (_texts, _sizes, _names, _hosts, _head, _unused, _needed, _ring, _ports, _image)
    found = [finding for rule in rules for finding in rule(document)]
    found += env_findings(("env",), _table(document, "env"), document.get("kind"))
    words = _table(document, "engine").get("extra_args", ())
    found += flag_findings(("engine", "extra_args"), words if _listed(words) else ())
    return found


def cross_warnings(document: Document) -> list[Finding]:
    """Return what is allowed and still likely to be a mistake."""
    found = env_warnings(("env",), _table(document, "env"))
    engine, api = _table(document, "engine"), _table(document, "api")
    kv, context = engine.get("kv_tokens"), engine.get("context_length")
    if isinstance(kv, int) and isinstance(context, int) and kv < context:
        seen = f"kv_tokens = {kv} holds less than one request of context_length = {context}"
        fix = "raise kv_tokens or lower context_length"
        path: KeyPath = ("engine", "kv_tokens")
        found.append(Finding(path, seen, "room for one whole request", fix, (_CONTEXT,)))
    if api.get("host") == "0.0.0.0" and "key_file" not in api:
        wanted = "an API key where the network can reach the server"
        fix = 'set `api.key_file`, or host = "127.0.0.1"'
        found.append(Finding(("api", "host"), "every address, and no API key", wanted, fix))
    return found


_CONTEXT: KeyPath = ("engine", "context_length")
_TP: KeyPath = ("engine", "tp")


def _table(document: Document, *keys: str) -> Mapping[str, Any]:
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _nodes(document: Document) -> list[tuple[int, Mapping[str, Any]]]:
    nodes = document.get("nodes", ())
    if not _listed(nodes):
        return []
    return [(index, node) for index, node in enumerate(nodes) if isinstance(node, Mapping)]


def _walk(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Yield every key and leaf, without recursion: TOML nests as deep as its author likes."""
    stack: list[tuple[KeyPath, object]] = [(path, value)]
    while stack:
        here, item = stack.pop()
        yield here, item
        if isinstance(item, Mapping):
            stack += [((*here, key), inner) for key, inner in item.items()]
        elif isinstance(item, (list, tuple)):
            stack += [((*here, index), inner) for index, inner in enumerate(item)]


def _texts(document: Document) -> Iterator[Finding]:
    for path, value in _walk(document):
        if isinstance(value, str) and not value.strip():
            fix = "write a value, or delete the line: an absent key means unset"
            yield Finding(path, f"`{dotted(path)}` is empty", "a value", fix)
        elif isinstance(value, str) and any(c < " " and c not in "\n\t" for c in value):
            fix = "delete the character"
            yield Finding(path, f"`{dotted(path)}` holds a control character", "plain text", fix)


def _sizes(document: Document) -> Iterator[Finding]:
    engine, nodes = _table(document, "engine"), _nodes(document)
    tp, ep = engine.get("tp"), engine.get("ep", 1)
    if not isinstance(tp, int) or isinstance(tp, bool) or tp < 1:
        return
    if nodes and tp != len(nodes):
        seen = f"tp = {tp}, but the number of [[nodes]] is {len(nodes)}"
        fix = f"set tp = {len(nodes)}, or add or remove nodes"
        related = tuple(("nodes", index) for index, _ in nodes)
        yield Finding(_TP, seen, "one GPU a node: tp equal to the number of nodes", fix, related)
    if isinstance(ep, int) and ep >= 1 and tp % ep:
        divisors = ", ".join(str(n) for n in range(1, tp + 1) if tp % n == 0)
        path: KeyPath = ("engine", "ep")
        seen = f"ep = {ep} with tp = {tp}"
        yield Finding(path, seen, "ep that divides tp", f"one of {divisors}", (_TP,))


def _names(document: Document) -> Iterator[Finding]:
    yield from _repeated(document, "name", "name another node, or delete this one")


def _hosts(document: Document) -> Iterator[Finding]:
    yield from _repeated(document, "host", "give each node its own address")


def _repeated(document: Document, key: str, fix: str) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, node in _nodes(document):
        value = node.get(key)
        if not isinstance(value, str) or not value.strip():
            continue
        same = value.rstrip(".").lower()
        if same in seen:
            text = f"node {key} {value!r} is used twice"
            first: KeyPath = ("nodes", seen[same], key)
            yield Finding(("nodes", index, key), text, f"a {key} of its own", fix, (first,))
        seen.setdefault(same, index)


def _head(document: Document) -> Iterator[Finding]:
    nodes = _nodes(document)
    if document.get("kind") != "fleet" or len(nodes) < 2:
        return
    for index, node in nodes:
        host = node.get("host")
        # IPv6 is refused by the schema, which names its kind as well
        what = unreachable(host) if isinstance(host, str) and ":" not in host else None
        if what is not None:
            role = "the head" if index == 0 else "a worker"
            seen = f"host {host!r} of {role} is {what}"
            wanted = "an address the other nodes can reach"
            fix = "use the node's address on the fabric or the LAN: ip -4 addr"
            yield Finding(("nodes", index, "host"), seen, wanted, fix)


def _unused(document: Document) -> Iterator[Finding]:
    if document.get("kind") == "local":
        paths: list[KeyPath] = [(name,) for name in FLEET_SECTIONS]
        paths += [("engine", key) for key in FLEET_ENGINE_KEYS]
        paths += [("nodes", i, key) for i, node in _nodes(document) for key in FLEET_NODE_KEYS]
        yield from _set_but(document, paths, "`kind`", "local", "fleet")
    weights = _table(document, "weights")
    mode = weights.get("mode")
    if mode in ("local", "copy"):
        paths = [("weights", key) for key in NFS_KEYS]
        paths += [("nodes", i, "nfs_server") for i, _ in _nodes(document)]
        yield from _set_but(document, paths, "`weights.mode`", mode, "nfs")
    topology = _table(document, "fabric").get("topology")
    if topology in ("switch", "pair"):
        paths = [("fabric", "ring")]
        yield from _set_but(document, paths, "`fabric.topology`", topology, "ring")


def _set_but(
    document: Document, paths: list[KeyPath], what: str, value: str, other: str
) -> Iterator[Finding]:
    for path in paths:
        if _at(document, path) is not None:
            seen = f'`{path[-1]}` is set but {what} is "{value}"'
            key = what.strip("`").rsplit(".", 1)[-1]
            wanted = f'keys that {what} = "{value}" uses'
            yield Finding(path, seen, wanted, f'remove it or set {key} = "{other}"')


def _at(document: object, path: KeyPath) -> object:
    value: Any = document
    for part in path:
        if isinstance(part, int):
            value = value[part] if _listed(value) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _needed(document: Document) -> Iterator[Finding]:
    if document.get("kind") != "fleet":
        return
    for name in FLEET_REQUIRED:
        if name not in document:
            fix = f"add [{name}], as in sites/four-sparks-switch.toml"
            yield Finding((name,), f"section [{name}] is missing", 'it for kind "fleet"', fix)
    for index, node in _nodes(document):
        if "host" not in node:
            wanted = "the address other nodes reach it by"
            path: KeyPath = ("nodes", index, "host")
            yield Finding(path, "a fleet node without `host`", wanted, 'add host = "10.0.0.1"')
    yield from _nfs_needed(document)


def _nfs_needed(document: Document) -> Iterator[Finding]:
    weights = _table(document, "weights")
    workers = _nodes(document)[1:]
    each = all("nfs_server" in node for _, node in workers)
    if weights.get("mode") == "nfs" and "nfs_server" not in weights and workers and not each:
        wanted = "the server's address, here or on every worker"
        path: KeyPath = ("weights", "nfs_server")
        fix = 'add nfs_server = "10.0.22.1"'
        yield Finding(path, 'mode = "nfs" without `nfs_server`', wanted, fix)


def _ring(document: Document) -> Iterator[Finding]:
    for section in ("ring", "nccl"):
        table = _table(document, "fabric", section)
        # Ring's own defaults: four channels each
        default = 4 if section == "ring" else None
        low, high = table.get("channels_min", default), table.get("channels_max", default)
        if isinstance(low, int) and isinstance(high, int) and low > high:
            path: KeyPath = ("fabric", section, "channels_min")
            seen = f"channels_min = {low} with channels_max = {high}"
            fix = f"set channels_max = {low} or channels_min = {high}"
            yield Finding(path, seen, "channels_min at most channels_max", fix)
    if _table(document, "fabric").get("topology") == "ring":
        for key in ("channels_min", "channels_max"):
            if key in _table(document, "fabric", "nccl"):
                path = ("fabric", "nccl", key)
                seen = f'`{key}` is set in [fabric.nccl] but `fabric.topology` is "ring"'
                yield Finding(path, seen, "ring channels in [fabric.ring]", "move it there")


def _ports(document: Document) -> Iterator[Finding]:
    port = _table(document, "api").get("port")
    if port is not None and port == _table(document, "engine").get("dist_port"):
        path: KeyPath = ("engine", "dist_port")
        fix = "set another dist_port"
        other: KeyPath = ("api", "port")
        yield Finding(path, f"dist_port = {port} is also api.port", "two ports", fix, (other,))


def _image(document: Document) -> Iterator[Finding]:
    recipe = _table(document, "image").get("recipe")
    if recipe in _CANARY_RECIPES and _table(document, "env").get(_RUST_MODE) != "never":
        seen = f'recipe "{recipe}" without {_RUST_MODE} = "never" in [env]'
        wanted = "it: that branch's engine looks for cargo at start-up, and the image has none"
        fix = f'add {_RUST_MODE} = "never" under [env]'
        related: KeyPath = ("env", _RUST_MODE)
        yield Finding(("image", "recipe"), seen, wanted, fix, (related,))
