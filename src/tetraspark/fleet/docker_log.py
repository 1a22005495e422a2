"""The log of a container as `docker logs --timestamps` prints it, read bit by bit. Pure."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z ")
PART_BYTES = 16 * 1024
"""Docker keeps a longer line in parts and stamps each of them."""
OVERLAP = 1_000_000_000
"""How much is asked for again, nanoseconds: two streams race on their way into the log."""


@dataclass(frozen=True)
class Entry:
    """A line and when the container wrote it, nanoseconds of the node's Unix time."""

    at: int
    text: str

    @property
    def digest(self) -> str:
        """A short name for the text."""
        return hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Position:
    """How far a log has been read: the newest stamp, and the lines of the last second by digest."""

    newest: int = 0
    recent: tuple[tuple[int, str], ...] = ()

    @property
    def since(self) -> str:
        """The time to ask Docker for, as its `--since` takes it; "" for the whole log."""
        at = max(0, self.newest - OVERLAP)
        return f"{at // 10**9}.{at % 10**9:09d}" if at else ""


def parse(text: str) -> list[Entry]:
    """Read lines with stamps; what has none (Docker's own words) is passed over."""
    found = []
    for line in text.split("\n"):
        match = STAMP.match(line)
        at = None if match is None else _nanoseconds(match[1], match[2])
        if match is not None and at is not None:
            rest = line[match.end() :]
            if len(rest.encode()) > PART_BYTES:
                rest = rest.replace(match[0], "")
            found.append(Entry(at, rest.rstrip("\r")))
    return found


def fresh(entries: Iterable[Entry], position: Position) -> tuple[list[Entry], Position]:
    """Return the lines that were not read before, and the new position."""
    known = Counter(position.recent)
    since = position.newest - OVERLAP
    found = []
    for entry in entries:
        key = (entry.at, entry.digest)
        if known[key]:
            known[key] -= 1
        elif entry.at >= since:
            found.append(entry)
    newest = max((position.newest, *(entry.at for entry in found)))
    recent = (*position.recent, *((entry.at, entry.digest) for entry in found))
    return found, Position(newest, tuple(one for one in recent if one[0] >= newest - OVERLAP))


def _nanoseconds(seconds: str, fraction: str) -> int | None:
    """Return the Unix time of a stamp, or None for a day or an hour that there is not."""
    try:
        moment = datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 10**9 + int(fraction)
