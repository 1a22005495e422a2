"""What must hold between the keys of a site file; each rule takes the document as parsed."""

from collections.abc import Iterator, Mapping

from tetraspark.site.engines import BRANCH, engine_of
from tetraspark.site.environment import env_findings, env_warnings
from tetraspark.site.finding import Finding
from tetraspark.site.flags import flag_findings
from tetraspark.site.host import unreachable
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.lookup import Document, is_list, nodes_of, table_at
from tetraspark.site.modes import needed, unused
from tetraspark.site.sampled_graph import sampled_findings

_RUST_MODE = "SGLANG_RUST_BUILD_MODE"


def cross_check(document: Document) -> list[Finding]:
    """Return every broken rule; a part of the wrong type is left to the schema."""
    rules = (_texts, _sizes, _names, _hosts, _head, unused, needed, _ring, _ports, _image, _split)
    found = [finding for rule in rules for finding in rule(document)]
    engine = engine_of(document)
    found += env_findings(("env",), table_at(document, "env"), document.get("kind"), engine)
    found += sampled_findings(document, engine)
    words = table_at(document, "engine").get("extra_args", ())
    found += flag_findings(("engine", "extra_args"), words if is_list(words) else ())
    return found


def cross_warnings(document: Document) -> list[Finding]:
    """Return what is allowed and still likely to be a mistake."""
    found = env_warnings(("env",), table_at(document, "env"))
    engine, api = table_at(document, "engine"), table_at(document, "api")
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
    engine, nodes = table_at(document, "engine"), nodes_of(document)
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
    for index, node in nodes_of(document):
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
    nodes = nodes_of(document)
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


def _ring(document: Document) -> Iterator[Finding]:
    for section in ("ring", "nccl"):
        table = table_at(document, "fabric", section)
        # Ring's own defaults: four channels each
        default = 4 if section == "ring" else None
        low, high = table.get("channels_min", default), table.get("channels_max", default)
        if isinstance(low, int) and isinstance(high, int) and low > high:
            path: KeyPath = ("fabric", section, "channels_min")
            seen = f"channels_min = {low} with channels_max = {high}"
            fix = f"set channels_max = {low} or channels_min = {high}"
            yield Finding(path, seen, "channels_min at most channels_max", fix)
    if table_at(document, "fabric").get("topology") == "ring":
        for key in ("channels_min", "channels_max"):
            if key in table_at(document, "fabric", "nccl"):
                path = ("fabric", "nccl", key)
                seen = f'`{key}` is set in [fabric.nccl] but `fabric.topology` is "ring"'
                yield Finding(path, seen, "ring channels in [fabric.ring]", "move it there")


def _ports(document: Document) -> Iterator[Finding]:
    port = table_at(document, "api").get("port")
    if port is not None and port == table_at(document, "engine").get("dist_port"):
        path: KeyPath = ("engine", "dist_port")
        fix = "set another dist_port"
        other: KeyPath = ("api", "port")
        yield Finding(path, f"dist_port = {port} is also api.port", "two ports", fix, (other,))


def _image(document: Document) -> Iterator[Finding]:
    recipe = table_at(document, "image").get("recipe")
    if engine_of(document) == BRANCH and table_at(document, "env").get(_RUST_MODE) != "never":
        seen = f'recipe "{recipe}" without {_RUST_MODE} = "never" in [env]'
        wanted = "it: that branch's engine looks for cargo at start-up, and the image has none"
        fix = f'add {_RUST_MODE} = "never" under [env]'
        related: KeyPath = ("env", _RUST_MODE)
        yield Finding(("image", "recipe"), seen, wanted, fix, (related,))


def _split(document: Document) -> Iterator[Finding]:
    """The split needs the engine that the plugin hooks, ranks to share rows, and room for both."""
    if "prefill_split" not in document:
        return
    path: KeyPath = ("prefill_split",)
    recipe = table_at(document, "image").get("recipe")
    if recipe is not None and recipe != "release":
        seen, wanted = f'[prefill_split] with recipe "{recipe}"', "the engine its plugin hooks"
        fix = 'set recipe = "release", or remove the section'
        yield Finding(path, seen, wanted, fix, (("image", "recipe"),))
    if table_at(document, "engine").get("tp") == 1:
        fix = "remove the section"
        yield Finding(path, "[prefill_split] with tp = 1", "ranks to share rows", fix, (_TP,))
    yield from _unreached(document)


def _unreached(document: Document) -> Iterator[Finding]:
    """A threshold above what the engine ever sees would never split anything."""
    split, engine = table_at(document, "prefill_split"), table_at(document, "engine")
    for key, limit, default in (
        ("min_context", "context_length", 32_768),
        ("min_rows", "chunked_prefill_size", 1024),
    ):
        least, most = split.get(key, default), engine.get(limit)
        if isinstance(least, int) and isinstance(most, int) and least > most:
            path: KeyPath = ("prefill_split", key)
            seen = f"{key} = {least} with {limit} = {most}: no step is ever split"
            fix = f"lower {key}, raise engine.{limit}, or remove the section"
            yield Finding(path, seen, f"{key} at most {limit}", fix, (("engine", limit),))
