"""Tensors of a checkpoint in safetensors files, by the format's own description.

A file begins with the length of its header, eight bytes little-endian, then the header: a JSON
object that has dtype, shape and data_offsets of each tensor, counted from the header's end.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.refusal import Refusal

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_HEADER = 100_000_000
"""The limit of the safetensors library."""
PREFIXES = ("", "model.")
"""The engine accepts the names of the release, and those it makes of them itself."""
WISH = "a whole checkpoint in safetensors"
FIX = "bring the checkpoint again, or correct model.path; then the same command"


@dataclass(frozen=True)
class Header:
    """A safetensors file: its tensors, where their bytes begin, and what identifies it."""

    path: Path
    size: int
    sha256: str
    tensors: dict[str, Any]
    begin: int

    def as_source(self) -> dict[str, Any]:
        """Return the file as a manifest names it."""
        return {"file": self.path.name, "size": self.size, "header_sha256": self.sha256}


@dataclass(frozen=True)
class Rows:
    """A tensor of two dimensions of one-byte values: row i is `bytes` long."""

    name: str
    header: Header
    offset: int
    count: int
    bytes: int
    dtype: str

    @property
    def path(self) -> Path:
        """The file it is in."""
        return self.header.path

    def at(self, row: int) -> int:
        """Return where a row begins in the file."""
        return self.offset + row * self.bytes


def read_header(path: Path) -> Header:
    """Read a file's header. Raises Refusal for what is no safetensors file, OSError."""
    _require_file(path)
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > min(size - 8, MAX_HEADER):
            raise Refusal(path, f"{size} bytes without a safetensors header", WISH, FIX)
        text = file.read(length)
    try:
        tensors = json.loads(text)
    except ValueError:
        tensors = None
    if not isinstance(tensors, dict):
        raise Refusal(path, "a header that is no JSON object", WISH, FIX)
    return Header(path, size, hashlib.sha256(first + text).hexdigest(), tensors, 8 + length)


def read_index(model: Path) -> dict[str, str]:
    """Return which file has which tensor. Raises Refusal when there is no checkpoint, OSError."""
    index = model / INDEX
    if not index.exists():
        if not (model / SINGLE).exists():
            raise Refusal(model, f"neither {INDEX} nor {SINGLE}", WISH, FIX)
        return dict.fromkeys(read_header(model / SINGLE).tensors, SINGLE)
    _require_file(index)
    size = index.stat().st_size
    if size > MAX_HEADER:
        raise Refusal(index, f"{size} bytes", f"an index of at most {MAX_HEADER}", FIX)
    try:
        found = json.loads(index.read_bytes())["weight_map"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise Refusal(index, "no weight_map", WISH, FIX)
    return found


def _require_file(path: Path) -> None:
    """Raise Refusal for what is there and no file: a pipe or a device may never end."""
    if path.exists() and not path.is_file():
        raise Refusal(path, "not a regular file", WISH, FIX)


class Checkpoint:
    """A folder of safetensors files; each header is read once."""

    def __init__(self, model: Path) -> None:
        self.model = model
        self._index = read_index(model)
        self._headers: dict[str, Header] = {}

    def rows(self, name: str, dtype: str, count: int, width: int) -> Rows:
        """Return a tensor of `count` rows of `width` bytes. Raises Refusal for any other."""
        found = [prefix + name for prefix in PREFIXES if prefix + name in self._index]
        if len(found) != 1:
            seen = f"{len(found)} tensors called {name}"
            raise Refusal(self.model / INDEX, seen, "one", FIX)
        full, file = found[0], self._index[found[0]]
        if file not in self._headers:
            self._headers[file] = read_header(self._inside(file))
        header = self._headers[file]
        return _rows(full, header, header.tensors.get(full), dtype, [count, width])

    def _inside(self, file: object) -> Path:
        if not isinstance(file, str) or Path(file).name != file:
            seen = f"a file called {file!r}"
            raise Refusal(self.model / INDEX, seen, "files of the same folder", FIX)
        return self.model / file


def _rows(name: str, header: Header, entry: Any, dtype: str, shape: list[int]) -> Rows:
    """Check a header's entry of a tensor."""
    found = entry if isinstance(entry, dict) else {}
    if (found.get("dtype"), found.get("shape")) != (dtype, shape):
        seen = f"{name} is {found.get('dtype')} {found.get('shape')}"
        raise Refusal(header.path, seen, f"{dtype} {shape}, as config.json says", FIX)
    offsets = found.get("data_offsets")
    if not (isinstance(offsets, list) and len(offsets) == 2 and _numbers(offsets)):
        raise Refusal(header.path, f"{name} has no data_offsets", WISH, FIX)
    begin, end = offsets
    if begin < 0 or end - begin != shape[0] * shape[1] or header.begin + end > header.size:
        seen = f"{name} has bytes {begin} to {end} of {header.size - header.begin}"
        raise Refusal(header.path, seen, WISH + ", not cut off", FIX)
    return Rows(name, header, header.begin + begin, shape[0], shape[1], dtype)


def _numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int) for value in values)
