"""Verify shards: the first page, sampled rows against manifest and checkpoint, and every byte."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.events import Meter, tell
from tetraspark.engram.inside.files import read_json
from tetraspark.engram.inside.part import READ_BYTES
from tetraspark.engram.inside.plan import Shard
from tetraspark.engram.inside.record import HEADER_BYTES, Reader, header_page, record_hashes


def verify(shards: list[Shard]) -> None:
    """Read all of each shard, and its sampled rows in the checkpoint; tell what was found."""
    for shard in shards:
        tell("verified", shard=shard.name, bytes=shard.bytes, faults=list(_faults(shard)))


def sample(folder: Path, names: list[str]) -> None:
    """Read the first page and the sampled rows of shards, by their manifests alone."""
    for name in names:
        manifest = read_json(folder / f"{name}.json")
        if not isinstance(manifest, dict):
            faults = [f"its manifest is {manifest}" if manifest else "no manifest"]
            tell("verified", shard=name, bytes=0, faults=faults)
            continue
        faults = list(sample_faults(folder / f"{name}.bin", manifest))
        tell("verified", shard=name, bytes=manifest.get("bytes", 0), faults=faults)


def sample_faults(path: Path, manifest: dict[str, Any]) -> Iterator[str]:
    """Find what is not as the manifest says, from its first page and sampled rows."""
    if not path.is_file():
        yield "it is not there"
        return
    if path.stat().st_size != manifest.get("bytes"):
        yield f"{path.stat().st_size} bytes, {manifest.get('bytes')} in the manifest"
        return
    with path.open("rb", buffering=0) as file:
        try:
            if file.read(HEADER_BYTES) != header_page(manifest):
                yield "its first page is of another shard"
            for row, wanted in manifest["samples"]:
                file.seek(HEADER_BYTES + (row - manifest["rows"][0]) * manifest["row_bytes"])
                if hashlib.sha256(file.read(manifest["row_bytes"])).hexdigest() != wanted:
                    yield f"row {row} is not the one that was packed"
                    return
        except (KeyError, TypeError, ValueError):
            yield "its manifest is damaged"


def _faults(shard: Shard) -> Iterator[str]:
    manifest, path = read_json(shard.path("json")), shard.path("bin")
    if manifest is None:
        yield "no manifest"
        return
    other = shard.differences(manifest)
    if other or not isinstance(manifest, dict):
        yield f"its manifest is {other}"
        return
    if "sha256" not in manifest or "samples" not in manifest:
        yield "a manifest cut short"
        return
    found = list(sample_faults(path, manifest))
    yield from found
    if found:
        return
    with Reader(shard.weight, shard.scale) as reader:
        for row, wanted in record_hashes(reader, [row for row, _ in manifest["samples"]]):
            if [row, wanted] not in manifest["samples"]:
                yield f"row {row} of the checkpoint is another one"
                return
    if _sha256(shard, path) != manifest["sha256"]:
        yield "its bytes are not those that were packed"


def _sha256(shard: Shard, path: Path) -> str:
    """Hash a file without filling the page cache with it."""
    found, meter, done = hashlib.sha256(), Meter(shard.name, "verify", shard.bytes), 0
    with path.open("rb", buffering=0) as file:
        while True:
            data = file.read(READ_BYTES)
            if not data:
                return found.hexdigest()
            found.update(data)
            os.posix_fadvise(file.fileno(), done, len(data), os.POSIX_FADV_DONTNEED)
            done += len(data)
            meter.at(done)
