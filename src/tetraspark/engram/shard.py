"""What a node must have before it serves: the shards of its own rank. Pure.

Sees the manifests and the sizes alone. The bytes are proven by `verify_sample`, which reads a few
rows, and by `tetraspark pack --verify`, which reads them all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tetraspark.doctor.check import Check
from tetraspark.engram.layout import Split
from tetraspark.engram.manifest import Manifest, read_manifest
from tetraspark.fleet.facts import Facts, Wanted


def shard_name(layer: int | str, rank: int, tp: int) -> str:
    """Return the name of a shard without its ending: the dsv4.1 images' readers look for it."""
    return f"engram-l{layer}-r{rank}of{tp}"


def wanted(folder: str, rank: int, tp: int) -> Wanted:
    """Return what a probe has to look at in a node's folder of shards."""
    texts = f"{folder}/{shard_name('*', rank, tp)}.json"
    return Wanted(files=(texts,), sizes=(_everything(folder),), space=(folder,))


def manifests(folder: str, rank: int, tp: int, facts: Facts) -> list[Manifest]:
    """Return those manifests of a rank's shards that can be read, by layer."""
    found = [one.manifest for one in _look(folder, rank, tp, facts) if one.manifest]
    return sorted(found, key=lambda one: one.layer)


def shard_checks(
    node: str, folder: str, rank: int, tp: int, facts: Facts, split: Split | None = None
) -> list[Check]:
    """Check the shards of a rank as `wanted` found them; `split` is that of the site's engine."""
    found = _look(folder, rank, tp, facts)
    known = [one.manifest for one in found if one.manifest]
    layers = sorted({layer for one in known for layer in one.layers})
    named = {one.layer for one in found}
    lost = [shard_name(layer, rank, tp) for layer in layers if layer not in named]
    faults = [f"{name}.json is not there" for name in lost]
    faults += [f"{one.name}.json: {one.fault}" for one in found if one.fault]
    wish = f"shards of rank {rank} of {tp} in {folder}"
    fix = f"tetraspark pack --node {node}"
    if not found:
        return [Check("ENGRAM.MANIFEST", node, "failed", _instead(folder, facts), wish, fix)]
    anew = f"{fix} --replace"
    names = ", ".join(one.name for one in found)
    checks = [_check("ENGRAM.MANIFEST", node, faults, names, wish, anew if known else fix)]
    if known:
        rows = [text for one in found for text in _rows(one, rank, tp, split)]
        sizes = [text for one in found for text in _size(one, folder, facts)]
        checks += [
            _check("ENGRAM.ROWS", node, rows, _ranges(known), f"the rows of rank {rank}", anew),
            _check("ENGRAM.SIZE", node, sizes, "all as written", "a header and every row", anew),
        ]
    return checks


@dataclass(frozen=True)
class _Shard:
    """One manifest as found: its file's name, the layer there, and what it says or lacks."""

    name: str
    layer: int
    manifest: Manifest | None
    fault: str = ""


def _everything(folder: str) -> str:
    return f"{folder}/engram-l*"


def _look(folder: str, rank: int, tp: int, facts: Facts) -> list[_Shard]:
    pattern = re.escape(f"{facts.expand(folder)}/") + shard_name(r"(\d+)", rank, tp) + r"\.json"
    found = []
    for path, text in sorted(facts.files.items()):
        match = re.fullmatch(pattern, path)
        if match:
            layer = int(match[1])
            name = shard_name(layer, rank, tp)
            try:
                found.append(_Shard(name, layer, read_manifest(text)))
            except ValueError as error:
                found.append(_Shard(name, layer, None, str(error)))
    return found


def _instead(folder: str, facts: Facts) -> str:
    """Say what is in the folder in place of the rank's manifests."""
    there = [path.rpartition("/")[2] for path in facts.globs.get(_everything(folder), ())]
    parts = [name for name in there if name.endswith(".part")]
    if parts:
        return f"no manifest; unfinished: {', '.join(parts)}"
    return f"no manifest; there: {', '.join(there[:6])}" if there else "no shards"


def _rows(shard: _Shard, rank: int, tp: int, split: Split | None) -> Iterator[str]:
    """Find what makes a shard another one than the rank's; it must never be served."""
    one = shard.manifest
    if one is None:
        return
    if (one.layer, one.rank, one.tp) != (shard.layer, rank, tp):
        is_of = f"layer {one.layer}, rank {one.rank} of {one.tp}"
        yield f"{shard.name} is a wrong-rank shard: its manifest is of {is_of}"
    elif split is not None and one.split != split:
        yield f"{shard.name} is split by {one.split}; the site's engine splits by {split}"
    elif one.rows != one.range_of(rank, tp):
        first, end = one.range_of(rank, tp)
        has = f"rows {one.rows[0]} to {one.rows[1]}, those of {one.owner()}"
        yield f"{shard.name} is a wrong-rank shard: {has}; rank {rank} has rows {first} to {end}"


def _size(shard: _Shard, folder: str, facts: Facts) -> Iterator[str]:
    if shard.manifest is None:
        return
    size = facts.sizes.get(f"{facts.expand(folder)}/{shard.name}.bin")
    if size is None:
        yield f"{shard.name}.bin is not there"
    elif size != shard.manifest.bytes:
        yield f"{shard.name}.bin has {size} bytes, its manifest {shard.manifest.bytes}"


def _ranges(known: list[Manifest]) -> str:
    return ", ".join(f"layer {one.layer}: {one.rows[0]} to {one.rows[1]}" for one in known)


def _check(id: str, node: str, faults: list[str], fine: str, wish: str, fix: str) -> Check:
    if faults:
        return Check(id, node, "failed", "; ".join(faults), wish, fix)
    return Check(id, node, "ok", fine, wish)
