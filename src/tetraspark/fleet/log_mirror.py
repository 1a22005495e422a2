"""The copy of a container's log in the run's folder: whole lines, without Docker's stamps.

Several programs may bring it up to date (`serve`, `logs -f`, `status`), and each may be killed at
any moment: a cursor beside the log tells how much of it counts.
"""

import fcntl
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import Field, Strict

from tetraspark.errors import RunError
from tetraspark.fleet.clock import Clock
from tetraspark.fleet.docker_log import Entry, Position, fresh, parse
from tetraspark.fleet.record_file import Shape, parse_record, read_record, set_aside
from tetraspark.fleet.run_files import TIME, log_path, times_path, write_atomically

ANEW = "tetraspark: copied anew from Docker; the copy before, with a damaged cursor, is {}"
CUT = "tetraspark: lines are left out here; Docker on the node has them: docker logs"


@dataclass(frozen=True)
class Cursor:
    """What has been copied: bytes and lines of the log, Docker's position, the node's clock."""

    size: int = 0
    lines: int = 0
    position: Position = field(default_factory=Position)
    clock: Clock | None = None


class StoredPosition(Shape):
    """`Position`, in a cursor's file."""

    newest: int
    recent: list[Annotated[tuple[int, str], Strict(False)]]


class StoredClock(Shape):
    """`Clock`, in a cursor's file."""

    low: float
    high: float


class StoredCursor(Shape):
    """rankN.cursor: `Cursor`."""

    size: Annotated[int, Field(ge=0)]
    lines: Annotated[int, Field(ge=0)]
    position: StoredPosition
    clock: StoredClock | None


class LogMirror:
    """The copy of one rank's log."""

    def __init__(self, run_dir: Path, rank: int) -> None:
        self._log = log_path(run_dir, rank)
        self._times = times_path(run_dir, rank)
        self._cursor = run_dir / f"rank{rank}.cursor"
        self._aside: str | None = None

    @property
    def since(self) -> str:
        """Since when lines are wanted, as Docker takes it."""
        return self._read().position.since

    def clock(self, seen: Clock) -> Clock:
        """Return the node's clock, from an exchange just made and those of earlier copies."""
        known = self._read().clock
        return seen if known is None else known.and_then(seen)

    def add(self, text: str, cut: bool, seen: Clock) -> None:
        """Append what is new in a text of `docker logs --timestamps`; `cut` when lines are missing.

        `seen` is what the exchange that brought the text tells of the node's clock.
        """
        while not self._added(text, cut, seen):
            pass  # The copy was put aside, by this program or by another: to a new one, then.

    def _added(self, text: str, cut: bool, seen: Clock) -> bool:
        with self._log.open("ab") as log, self._times.open("ab") as times:
            fcntl.flock(log, fcntl.LOCK_EX)
            if not self._is_whole(log):
                return False
            cursor = self._read()
            clock = seen if cursor.clock is None else cursor.clock.and_then(seen)
            entries, position = fresh(parse(text), cursor.position)
            if cut and entries:
                entries.insert(0, Entry(entries[0].at, CUT))
            if self._aside is not None and entries:
                entries.insert(0, Entry(entries[0].at, ANEW.format(self._aside)))
            _cut_back(log, cursor.size)
            _cut_back(times, cursor.lines * TIME.size)
            size = cursor.size
            for entry in entries:
                times.write(TIME.pack(size, entry.at / 1e9 + clock.ahead))
                size += log.write(entry.text.encode() + b"\n")
            log.flush()
            times.flush()
            done = Cursor(size, cursor.lines + len(entries), position, clock)
            write_atomically(self._cursor, asdict(done))
        return True

    def _is_whole(self, log: IO[bytes]) -> bool:
        """Tell whether the open log is the copy, and its cursor can be read; else put both aside.

        Docker has all of it, and it is copied anew: what was there is kept under another name.
        """
        try:
            if not os.path.samestat(os.fstat(log.fileno()), self._log.stat()):
                return False
            self._stored()
        except FileNotFoundError:
            return False
        except RunError:
            _, _, self._aside = (
                set_aside(one).name for one in (self._times, self._cursor, self._log)
            )
            return False
        return True

    def _read(self) -> Cursor:
        """Return the cursor; that of nothing where there is none, or where it is damaged."""
        try:
            return self._stored()
        except RunError:
            return Cursor()

    def _stored(self) -> Cursor:
        wanted, fix = "how much of a log has been copied", "tetraspark logs copies it anew"
        found = read_record(self._cursor, StoredCursor, wanted, fix)
        return Cursor() if found is None else _cursor(found)


def read_cursor(data: bytes) -> Cursor:
    """Return what a cursor's file holds. Raises ValueError. Pure."""
    return _cursor(parse_record(data, StoredCursor))


def _cursor(found: Mapping[str, Any]) -> Cursor:
    place, clock = found["position"], found["clock"]
    position = Position(place["newest"], tuple((one[0], one[1]) for one in place["recent"]))
    known = Clock(clock["low"], clock["high"]) if clock else None
    return Cursor(found["size"], found["lines"], position, known)


def _cut_back(file: IO[bytes], size: int) -> None:
    """Drop what a killed program wrote and did not get to record."""
    if os.fstat(file.fileno()).st_size != size:
        file.truncate(size)
