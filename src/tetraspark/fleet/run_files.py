"""The files of a run that hold what its ranks say and how they ended, on the launcher's machine.

A rank of this machine writes them itself; for a rank elsewhere its runner does.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any

from tetraspark.engine.progress import progress_path
from tetraspark.fleet.rank import Exit

TIME = struct.Struct("<Qd")
"""A record of a times file: the byte where a line of the log begins, and its Unix time."""


def log_path(run_dir: Path, rank: int) -> Path:
    """Return the file with what a rank has printed."""
    return run_dir / f"rank{rank}.log"


def times_path(run_dir: Path, rank: int) -> Path:
    """Return the file that tells when each line of a log was written, where that is known."""
    return run_dir / f"rank{rank}.times"


def exit_path(run_dir: Path, rank: int) -> Path:
    """Return the file that records how a rank ended."""
    return run_dir / f"rank{rank}.exit"


def meminfo_path(run_dir: Path, rank: int) -> Path:
    """Return the file with /proc/meminfo of a rank's node, where that is another machine."""
    return run_dir / f"rank{rank}.meminfo"


def read_log(run_dir: Path, rank: int, offset: int, size: int = -1) -> bytes:
    """Return what a rank has printed from a byte offset on; nothing when it has no log."""
    return _read(log_path(run_dir, rank), offset, size)


def log_size(run_dir: Path, rank: int) -> int:
    """Return how many bytes a rank has printed; none when it has no log."""
    return _size(log_path(run_dir, rank))


def line_times(run_dir: Path, rank: int, offset: int, end: int) -> dict[int, float]:
    """Return the Unix times, by this machine's clock, of the lines that begin in a range of bytes.

    Empty where a log is its own and only source of times.
    """
    path = times_path(run_dir, rank)
    first, last = _record_from(path, offset), _record_from(path, end)
    data = _read(path, first * TIME.size, (last - first) * TIME.size)
    return dict(TIME.iter_unpack(data))


def _record_from(path: Path, offset: int) -> int:
    """Return the number of the first record of a times file that is not before a byte offset."""
    first, last = 0, _size(path) // TIME.size
    while first < last:
        middle = (first + last) // 2
        if TIME.unpack(_read(path, middle * TIME.size, TIME.size))[0] < offset:
            first = middle + 1
        else:
            last = middle
    return first


def read_exit(run_dir: Path, rank: int) -> Exit | None:
    """Return how a rank ended, or None where nothing is recorded."""
    try:
        code, at = exit_path(run_dir, rank).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return None
    return Exit(int(code), float(at))


def record_exit(run_dir: Path, rank: int, end: Exit) -> None:
    """Record how a rank ended."""
    replace(exit_path(run_dir, rank), f"{end.code} {end.at}\n")


def read_progress(run_dir: Path, rank: int) -> dict[str, Any] | None:
    """Return what a rank's communicator last wrote about itself, or None."""
    try:
        progress = json.loads(progress_path(run_dir, rank).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return progress if isinstance(progress, dict) else None


def write_atomically(path: Path, value: object) -> None:
    """Write JSON so that a reader sees the old text or the new one, never a part."""
    replace(path, json.dumps(value, indent=1) + "\n")


def replace(path: Path, text: str) -> None:
    """Write a text so that a reader sees the old one or the new one, never a part."""
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _read(path: Path, offset: int, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except FileNotFoundError:
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
