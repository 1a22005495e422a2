"""What changed between two receipts of a line, in words. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tetraspark.errors import UsageError
from tetraspark.fleet.meminfo import GIB
from tetraspark.receipts.receipt import ServedNode, ServeReceipt
from tetraspark.receipts.settings import planned
from tetraspark.site.document import parse_toml
from tetraspark.site.keypath import dotted
from tetraspark.site.lookup import walk
from tetraspark.site.source import decode_source

SLIGHT_BYTES = GIB // 2
"""Idle memory that differs by less is told as the same: services come and go."""
ABSENT = "absent"
NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was: `where` is a node, a file's line, or what it is part of."""

    what: str
    where: str
    before: str
    after: str
    note: str = ""

    def __str__(self) -> str:
        told = f"{self.what} ({self.where}): {self.before} -> {self.after}"
        return f"{told}, {self.note}" if self.note else told

    def as_dict(self) -> dict[str, str]:
        """Return the fields and the sentence, for `--json`."""
        return {**asdict(self), "text": str(self)}


def changes(before: ServeReceipt, after: ServeReceipt) -> list[Change]:
    """Return all that changed: site, nodes, tetraspark, what was planned and what came of it."""
    return [
        *_site(before, after),
        *_nodes(before, after),
        *_program(before, after),
        *_tolerated(before, after),
        *_settings(before, after),
        *_effective(before, after),
    ]


def _site(before: ServeReceipt, after: ServeReceipt) -> Iterator[Change]:
    (old, places), (new, now) = _keys(before), _keys(after)
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            where = now.get(key) or f"{places[key]} of {before.id}"
            yield Change(f"site key {key}", where, old.get(key, ABSENT), new.get(key, ABSENT))
    if old == new and before.site_sha256 != after.site_sha256:
        told = f"same keys; SHA-256 {before.site_sha256[:12]}", after.site_sha256[:12]
        yield Change("site file", after.site, *told)


def _keys(receipt: ServeReceipt) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values of a site by dotted key, and the file and line of each."""
    source = decode_source(Path(receipt.site), receipt.site_text.encode())
    try:
        document, keys = parse_toml(source)
    except UsageError:
        # Taking a credential out of a text may leave no TOML: then there is nothing to compare.
        return {}, {}
    values, places = {}, {}
    for path, value in walk(document):
        if path and not isinstance(value, Mapping | tuple):
            key, line = dotted(path), keys.lines.get(path)
            values[key] = repr(value)
            places[key] = receipt.site if line is None else source.where(line)
    return dict(sorted(values.items())), places


def _nodes(before: ServeReceipt, after: ServeReceipt) -> Iterator[Change]:
    old = {one.node: one for one in before.nodes}
    new = {one.node: one for one in after.nodes}
    for node in dict.fromkeys((*old, *new)):
        if node not in old or node not in new:
            yield Change("node", node, *("there" if node in one else ABSENT for one in (old, new)))
        else:
            yield from _node(old[node], new[node])


def _node(old: ServedNode, new: ServedNode) -> Iterator[Change]:
    known = {
        "kernel": (old.kernel, new.kernel),
        "driver": (old.driver, new.driver),
        "board firmware": (old.board, new.board),
        **_firmware(old, new),
        "checkpoint": (_model(old), _model(new)),
    }
    for what, (was, now) in known.items():
        if was != now:
            yield Change(what, new.node, was or NOT_SEEN, now or NOT_SEEN)
    # The same image may have another tag: a rollback gives it one of its own.
    if [one.image and one.image.id for one in (old, new)] != [new.image and new.image.id] * 2:
        yield Change("image", new.node, _image(old), _image(new))
    yield from idle_change(new.node, old.idle_bytes, new.idle_bytes)


def idle_change(node: str, was: int | None, now: int | None) -> Iterator[Change]:
    """Compare the memory of an idle node; nothing is said where either was not looked at."""
    if was is None or now is None or abs(now - was) < SLIGHT_BYTES:
        return
    word = "less" if now < was else "more"
    note = f"{abs(now - was) / GIB:.1f} GiB {word}"
    yield Change("idle memory", node, f"{was / GIB:.1f} GiB", f"{now / GIB:.1f} GiB", note)


def _firmware(old: ServedNode, new: ServedNode) -> dict[str, tuple[str | None, str | None]]:
    was, now = old.nics or {}, new.nics or {}
    return {f"firmware of {one}": (was.get(one), now.get(one)) for one in sorted({*was, *now})}


def _image(node: ServedNode) -> str:
    return f"{node.image.tag} {node.image.id[7:19]}" if node.image else ABSENT


def _model(node: ServedNode) -> str | None:
    if node.model is None:
        return None
    return f"{node.model.folder} {node.model.sha256[:12]}, {node.model.bytes} bytes"


def _program(before: ServeReceipt, after: ServeReceipt) -> Iterator[Change]:
    told = {
        "version": (before.tetraspark, after.tetraspark),
        "revision": (before.revision[:19], after.revision[:19]),
    }
    for what, (was, now) in told.items():
        if was != now:
            yield Change(what, "tetraspark", was, now)
    ways = [one.plan.get("transport") for one in (before, after)]
    if None not in ways and ways[0] != ways[1]:
        yield Change("transport", "plan", *map(str, ways))
    engines = [str(one.plan.get("engine")) for one in (before, after)]
    if engines[0] != engines[1]:
        yield Change("engine", "plan", *engines)


def _tolerated(before: ServeReceipt, after: ServeReceipt) -> Iterator[Change]:
    told = [", ".join(one.tolerated) or "nothing" for one in (before, after)]
    if told[0] != told[1]:
        yield Change("started despite", "doctor", *told)


def _settings(before: ServeReceipt, after: ServeReceipt) -> Iterator[Change]:
    """Compare what tetraspark chose; what the site says is among its keys already."""
    old, new = (planned(one.plan, derived_only=True) for one in (before, after))
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield Change(f"setting {name}", "plan", old.get(name, ABSENT), new.get(name, ABSENT))


def _effective(before: ServeReceipt, after: ServeReceipt) -> Iterator[Change]:
    old, new = ({str(one["key"]): one for one in it.effective} for it in (before, after))
    for key in [one for one in old if one in new]:
        if _forced(old[key]) != _forced(new[key]):
            values = (str(_forced(one[key])) for one in (old, new))
            yield Change(f"in force: {key}", "/server_info", *values)


def _forced(one: Mapping[str, Any]) -> Any:
    """Return an engine's value where it is not as planned: a planned one is told as a setting."""
    return "as planned" if one["same"] else one["value"]
