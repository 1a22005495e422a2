"""What must hold between the keys of a site file; each rule takes the document as parsed."""

from collections.abc import Iterator

from tetraspark.site.collectives import two_shot_findings
from tetraspark.site.credentials import credential_findings
from tetraspark.site.engines import engine_of
from tetraspark.site.environment import env_findings, env_warnings
from tetraspark.site.finding import Finding
from tetraspark.site.flags import flag_findings
from tetraspark.site.guards import guard_findings
from tetraspark.site.host import unreachable
from tetraspark.site.image_rules import image_findings
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.lookup import Document, is_list, nodes_of, table_at, walk
from tetraspark.site.modes import needed, unused
from tetraspark.site.open_api import open_api
from tetraspark.site.prefill_split import split_findings
from tetraspark.site.sampled_graph import sampled_findings
from tetraspark.site.verbs import verbs_findings
from tetraspark.site.watch import watch_findings


def cross_check(document: Document) -> list[Finding]:
    """Return every broken rule; a part of the wrong type is left to the schema."""
    rules = (
        _texts,
        _sizes,
        _names,
        _hosts,
        _head,
        unused,
        needed,
        _ring,
        _ports,
        _ssh,
        _speed,
        open_api,
        two_shot_findings,
        verbs_findings,
        watch_findings,
    )
    found = [finding for rule in rules for finding in rule(document)]
    found += [*image_findings(document), *split_findings(document), *guard_findings(document)]
    engine = engine_of(document)
    found += env_findings(("env",), table_at(document, "env"), document.get("kind"), engine)
    found += sampled_findings(document, engine)
    words = table_at(document, "engine").get("extra_args", ())
    found += flag_findings(_EXTRA, words if is_list(words) else (), document.get("kind"))
    secrets = {finding.path: finding for finding in credential_findings(document)}
    # what else is wrong with such a value would repeat it
    return [*secrets.values(), *(one for one in found if one.path not in secrets)]


def cross_warnings(document: Document) -> list[Finding]:
    """Return what is allowed and still likely to be a mistake."""
    found = env_warnings(("env",), table_at(document, "env"))
    engine = table_at(document, "engine")
    kv, context = engine.get("kv_tokens"), engine.get("context_length")
    if isinstance(kv, int) and isinstance(context, int) and kv < context:
        seen = f"kv_tokens = {kv} holds less than one request of context_length = {context}"
        fix = "raise kv_tokens or lower context_length"
        path: KeyPath = ("engine", "kv_tokens")
        found.append(Finding(path, seen, "room for one whole request", fix, (_CONTEXT,)))
    return found


_CONTEXT: KeyPath = ("engine", "context_length")
_TP: KeyPath = ("engine", "tp")
_EXTRA: KeyPath = ("engine", "extra_args")


def _texts(document: Document) -> Iterator[Finding]:
    for path, value in walk(document):
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
    ring = table_at(document, "fabric", "ring")
    if "nccl_patch" in ring and "nccl_library_dir" not in ring:
        seen = "`nccl_patch` without `nccl_library_dir`"
        wanted = "the patched library that does so: stock NCCL does neither"
        fix = "set nccl_library_dir, or remove nccl_patch"
        yield Finding(("fabric", "ring", "nccl_patch"), seen, wanted, fix)
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


def _ssh(document: Document) -> Iterator[Finding]:
    if "port" in table_at(document, "ssh"):
        wanted = "keys of [ssh]: user, identity_file"
        fix = "put it into ~/.ssh/config: Port under the Host of each node"
        yield Finding(("ssh", "port"), "unknown key `ssh.port`", wanted, fix)


def _speed(document: Document) -> Iterator[Finding]:
    """A speed table gives requests verify blocks of unequal length, which Engram's hash refuses."""
    if "engram" in document and "sps_table" in table_at(document, "speculative"):
        path: KeyPath = ("speculative", "sps_table")
        wanted = "blocks of equal length: Engram ends the engine at the first unequal one"
        fix = "remove sps_table"
        yield Finding(path, "`sps_table` with [engram]", wanted, fix, (("engram",),))
