"""A shard on its way: the file that grows, and a journal of how far it is on the disk for sure."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.events import Meter
from tetraspark.engram.inside.files import read_object, write_json
from tetraspark.engram.inside.plan import Shard
from tetraspark.engram.inside.record import HEADER_BYTES, header_page
from tetraspark.engram.inside.refusal import naming

SYNC_BYTES = 256 << 20
"""How much a kill or a power cut can cost, and how much of it may wait in the page cache."""
READ_BYTES = 8 << 20


class Part:
    """Takes records in order. To be used in a `with`."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.path: Path = shard.path("bin.part")
        self.hash: Any = hashlib.sha256()
        self.rows = 0
        self._journal = shard.path("bin.part.json")
        self._synced = 0

    def __enter__(self) -> Part:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def resume(self) -> None:
        """Go back to the last row that is on the disk for sure, and hash what is before it.

        What is not as the journal says begins anew: a part that was damaged is nobody's loss.
        """
        journal = read_object(self._journal)
        rows = journal.get("rows") if journal.get("identity") == self.shard.identity else 0
        if not isinstance(rows, int) or not 0 < rows <= self.shard.count:
            rows = 0
        if rows and self._rehash(rows) != journal.get("sha256"):
            rows, self.hash = 0, hashlib.sha256()
        with naming(self.path):
            os.ftruncate(self._file, self._end(rows) if rows else 0)
        if not rows:
            self._write(header_page(self.shard.identity), 0)
            self.hash.update(header_page(self.shard.identity))
        self.rows, self._synced = rows, rows

    def append(self, records: memoryview, sha256: str) -> None:
        """Write the next records; `sha256` is of the file up to their end."""
        begin = self._end(self.rows)
        self._write(records, begin)
        self.rows += len(records) // self.shard.row_bytes
        # Starts the disk at once: waiting for the kernel's own limits would stop and go.
        os.posix_fadvise(self._file, begin, len(records), os.POSIX_FADV_DONTNEED)
        if self._end(self.rows) - self._end(self._synced) >= SYNC_BYTES:
            self.sync(sha256)

    def read(self, row: int) -> bytes:
        """Return a record that was written; `row` counts from the shard's first."""
        with naming(self.path):
            return os.pread(self._file, self.shard.row_bytes, self._end(row))

    def _end(self, rows: int) -> int:
        return HEADER_BYTES + rows * self.shard.row_bytes

    def _rehash(self, rows: int) -> str:
        """Hash the header and the first rows of the part as it lies there."""
        end, at = self._end(rows), 0
        meter, buffer = Meter(self.shard.name, "resume", end), memoryview(bytearray(READ_BYTES))
        while at < end:
            with naming(self.path):
                got = os.preadv(self._file, [buffer[: min(READ_BYTES, end - at)]], at)
            if not got:
                return "cut off"
            self.hash.update(buffer[:got])
            os.posix_fadvise(self._file, at, got, os.POSIX_FADV_DONTNEED)
            at += got
            meter.at(at)
        return str(self.hash.hexdigest())

    def _write(self, data: bytes | memoryview, offset: int) -> None:
        left = memoryview(data)
        while left:
            with naming(self.path):
                wrote = os.pwrite(self._file, left, offset)
            left, offset = left[wrote:], offset + wrote

    def sync(self, sha256: str) -> None:
        """Have it on the disk, then say so in the journal."""
        with naming(self.path):
            os.fdatasync(self._file)
        os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        value = {"identity": self.shard.identity, "rows": self.rows, "sha256": sha256}
        write_json(self._journal, value)
        self._synced = self.rows

    def discard(self) -> None:
        """Remove part and journal."""
        self.path.unlink(missing_ok=True)
        self._journal.unlink(missing_ok=True)
