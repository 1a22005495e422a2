"""Records of a shard: a row's weights, then its scales, without a byte between rows.

The kernel puts both where they belong while it reads (`preadv` into a list of places, 1,024 rows
at a time), so no byte is copied a second time and none is touched by Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.refusal import Refusal, naming
from tetraspark.engram.inside.source import FIX, WISH, Rows

MAGIC = b"DSV1EN41"
"""What the readers in the dsv4.1 images look for: 0x31344E4531565344, little-endian."""
HEADER_BYTES = 4096
GROUP = min(1024, os.sysconf("SC_IOV_MAX"))
"""Places that one `preadv` takes (IOV_MAX)."""


def header_page(shard: dict[str, Any]) -> bytes:
    """Return the first page: magic, layer, first row, end, rows of the table, bytes of a row."""
    first, end = shard["rows"]
    numbers = (shard["layer"], first, end, shard["table_rows"], shard["row_bytes"])
    return struct.pack("<8s5Q", MAGIC, *numbers).ljust(HEADER_BYTES, b"\0")


class Buffer:
    """Room for some records, with the places of their weights and scales."""

    def __init__(self, rows: int, weight: int, scale: int) -> None:
        size = weight + scale
        self.memory = memoryview(bytearray(rows * size))
        self.weights = [self.memory[i * size : i * size + weight] for i in range(rows)]
        self.scales = [self.memory[i * size + weight : (i + 1) * size] for i in range(rows)]
        self.size = size


class Reader:
    """Reads records out of a weight and a scale tensor, which may be in two files."""

    def __init__(self, weight: Rows, scale: Rows) -> None:
        self.weight, self.scale = weight, scale
        self._files = contextlib.ExitStack()
        self._open: dict[Path, int] = {}
        for path in (weight.path, scale.path):
            if path not in self._open:
                self._open[path] = self._files.enter_context(path.open("rb")).fileno()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def fill(self, buffer: Buffer, row: int, count: int) -> memoryview:
        """Read `count` rows from `row` on; return their records."""
        for rows, places in ((self.weight, buffer.weights), (self.scale, buffer.scales)):
            file = self._open[rows.path]
            for begin in range(0, count, GROUP):
                some = places[begin : min(begin + GROUP, count)]
                _scatter(file, rows, some, rows.at(row + begin))
        return buffer.memory[: count * buffer.size]

    def advise(self, row: int, count: int, advice: int) -> None:
        """Tell the kernel about the rows' part of the page cache."""
        for rows in (self.weight, self.scale):
            length = count * rows.bytes
            os.posix_fadvise(self._open[rows.path], rows.at(row), length, advice)


def _scatter(file: int, rows: Rows, places: list[memoryview], offset: int) -> None:
    """Read into all places; a file may give less than it is asked for."""
    missing, left = len(places) * rows.bytes, places
    while missing:
        with naming(rows.path):
            got = os.preadv(file, left, offset)
        if not got:
            raise Refusal(rows.path, f"it ends at byte {offset}", WISH + ", not cut off", FIX)
        missing, offset = missing - got, offset + got
        if missing:
            left = list(_rest(left, got))


def _rest(places: list[memoryview], got: int) -> Iterator[memoryview]:
    """Yield what of the places is still empty."""
    for place in places:
        if got < len(place):
            yield place[got:]
        got = max(got - len(place), 0)


def record_hashes(reader: Reader, rows: list[int]) -> list[list[Any]]:
    """Return some rows, each with the sha256 of its record, from the checkpoint."""
    buffer = Buffer(1, reader.weight.bytes, reader.scale.bytes)
    return [[row, hashlib.sha256(reader.fill(buffer, row, 1)).hexdigest()] for row in rows]


def sampled(first: int, end: int, count: int) -> list[int]:
    """Choose rows: the first, the last, and others at equal steps."""
    last, steps = end - first - 1, max(count - 1, 1)
    return sorted({first + last * i // steps for i in range(count)}) if last >= 0 else []
