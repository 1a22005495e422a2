"""Locks on a file that live with whoever opened it, and that others can ask about.

To try a lock is no way to ask: for that moment it is taken, and who comes to take it is refused.
So these are the open file description locks of Linux (fcntl(2)), which can be looked at; like
those of flock(2) they end with the process, however it ends.
"""

import fcntl
import struct
from pathlib import Path
from typing import IO, Literal

Kind = Literal["alone", "shared"]

_TYPES: dict[Kind, int] = {"alone": fcntl.F_WRLCK, "shared": fcntl.F_RDLCK}
_FLOCK = "hhqqi4x"
"""struct flock: l_type, l_whence, l_start, l_len (0: to the end), l_pid (0 for these locks)."""


def take(file: IO[str], kind: Kind = "alone", *, wait: bool = False) -> None:
    """Lock an open file, until it is closed; it must be open for reading and writing.

    Raises BlockingIOError where another has it, unless it is to `wait`.
    """
    request = struct.pack(_FLOCK, _TYPES[kind], 0, 0, 0, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, request)


def held(path: Path) -> Kind | None:
    """Return how a file is locked at this moment, None where it is not; nothing is locked."""
    try:
        with path.open("rb") as file:
            request = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0)
            found: int = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_OFD_GETLK, request))[0]
    except FileNotFoundError:
        return None
    return next((kind for kind, number in _TYPES.items() if number == found), None)
