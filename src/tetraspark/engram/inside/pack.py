"""Pack shards: what is missing, beside what is there, and nothing in the place of what is not ours.

A shard is written as `.bin.part`, gets its own name when every byte of it is on the disk, and its
manifest last: without a manifest there is no shard.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.events import Meter, tell
from tetraspark.engram.inside.files import locked, read_json, sync_folder, write_json
from tetraspark.engram.inside.part import Part
from tetraspark.engram.inside.pipeline import BUFFERS, stages
from tetraspark.engram.inside.plan import Shard
from tetraspark.engram.inside.record import GROUP, Buffer, Reader, record_hashes, sampled
from tetraspark.engram.inside.refusal import Refusal

CHUNK_ROWS = 16 * GROUP
SPARE_BYTES = 16 << 20
"""Room for manifests and journals."""


def pack(shards: list[Shard], samples: int, replace: bool) -> None:
    """Pack what is missing. Raises Refusal, before anything is written, for what is in the way."""
    with contextlib.ExitStack() as locks:
        for shard in shards:
            locks.enter_context(locked(shard.folder / f".{shard.name}.lock"))
        _pack_missing(shards, samples, replace)


def _pack_missing(shards: list[Shard], samples: int, replace: bool) -> None:
    missing = []
    for shard in shards:
        if shard.whole() and not replace:
            Part(shard).discard()
            tell("whole", shard=shard.name, bytes=shard.bytes)
        else:
            if not replace:
                _refuse_others(shard)
            missing.append(shard)
    _require_room(missing)
    for shard in missing:
        _pack(shard, samples)
        tell("packed", shard=shard.name, bytes=shard.bytes)


def _refuse_others(shard: Shard) -> None:
    """Refuse to write over what is not the same shard, whole or begun."""
    fix = "look at it; to pack anew in its place: the same command with --replace"
    journal, manifest = read_json(shard.path("bin.part.json")), read_json(shard.path("json"))
    there: list[tuple[Path, object]] = []
    if manifest is not None:
        there.append((shard.path("json"), manifest))
    if journal is not None:
        named = journal.get("identity") if isinstance(journal, dict) else journal
        there.append((shard.path("bin.part.json"), named))
    for path, found in there:
        other = shard.differences(found)
        if other:
            raise Refusal(path, f"it is {other}", "this shard's own", fix)
    if manifest is not None:
        seen = "its manifest is there, and not all of its bytes"
        raise Refusal(shard.path("bin"), seen, f"{shard.bytes} bytes", fix)
    if shard.path("bin").exists() and journal is None:
        seen = "a shard without a manifest: it may be of any checkpoint, and cut off"
        raise Refusal(shard.path("bin"), seen, "a shard that was packed to its end", fix)


def _require_room(shards: list[Shard]) -> None:
    """Refuse to begin what cannot be ended. What a part has already counts."""
    if not shards:
        return
    folder = shards[0].folder
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    needed = SPARE_BYTES + sum(shard.bytes - _there(shard) for shard in shards)
    if free < needed:
        seen = f"{_amount(free)} free"
        wanted = f"{_amount(needed)} for {len(shards)} shards"
        raise Refusal(folder, seen, wanted, f"df -h {folder}; free some room, or set engram.dir")


def _amount(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


def _there(shard: Shard) -> int:
    """Return the bytes that are on the disk already, under either name."""
    path = shard.path("bin" if shard.renamed() else "bin.part")
    return min(path.stat().st_blocks * 512, shard.bytes) if path.exists() else 0


def _pack(shard: Shard, samples: int) -> None:
    if shard.renamed():
        # Ended between the new name and the manifest: back, and prove it as any other part.
        shard.path("bin").replace(shard.path("bin.part"))
    with Part(shard) as part, Reader(shard.weight, shard.scale) as reader:
        part.resume()
        _copy(shard, part, reader)
        part.sync(part.hash.hexdigest())
        rows = sampled(shard.first, shard.first + shard.count, samples)
        hashes = record_hashes(reader, rows)
        for row, wanted in hashes:
            if hashlib.sha256(part.read(row - shard.first)).hexdigest() != wanted:
                seen = f"row {row} is not what was written"
                raise Refusal(part.path, seen, "a disk that keeps its bytes", "sudo dmesg | tail")
        _publish(shard, part, {"sha256": part.hash.hexdigest(), "samples": hashes})


def _publish(shard: Shard, part: Part, proof: dict[str, Any]) -> None:
    """Give the part its name, then write the manifest."""
    shard.path("json").unlink(missing_ok=True)
    sync_folder(shard.folder)
    part.path.replace(shard.path("bin"))
    sync_folder(shard.folder)
    write_json(shard.path("json"), {**shard.identity, **proof})
    part.discard()


def _copy(shard: Shard, part: Part, reader: Reader) -> None:
    """Bring the rows that the part lacks: read, hash and write at the same time."""
    chunk = max(min(CHUNK_ROWS, shard.count), 1)
    sizes = shard.weight.bytes, shard.scale.bytes
    free: queue.Queue[Buffer] = queue.Queue()
    for _ in range(BUFFERS):
        free.put(Buffer(chunk, *sizes))
    meter = Meter(shard.name, "pack", shard.bytes)

    def digest(thing: tuple[Buffer, memoryview]) -> tuple[Buffer, memoryview, str]:
        part.hash.update(thing[1])
        return (*thing, part.hash.copy().hexdigest())

    def write(thing: tuple[Buffer, memoryview, str]) -> None:
        buffer, records, sha256 = thing
        part.append(records, sha256)
        free.put(buffer)
        meter.at(shard.bytes - (shard.count - part.rows) * shard.row_bytes)

    begin = shard.first + part.rows
    end = shard.first + shard.count
    reader.advise(begin, end - begin, os.POSIX_FADV_SEQUENTIAL)
    with stages(digest, write) as first:
        for row in range(begin, end, chunk):
            count = min(chunk, end - row)
            while True:
                first.check()
                try:
                    buffer = free.get(timeout=1)
                    break
                except queue.Empty:
                    continue
            first.put((buffer, reader.fill(buffer, row, count)))
            # From the beginning: a large folio that ends in a later chunk stays until then.
            reader.advise(begin, row + count - begin, os.POSIX_FADV_DONTNEED)
