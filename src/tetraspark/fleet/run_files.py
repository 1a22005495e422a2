"""The files of a run that hold what its ranks say and how they ended, on the launcher's machine.

A rank of this machine writes them itself; for a rank elsewhere its runner does.
"""

import json
import os
import re
import struct
from pathlib import Path
from typing import Any

from tetraspark.engine.progress import progress_path
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.progress_shape import StoredProgress
from tetraspark.fleet.rank import Exit
from tetraspark.fleet.record_file import read_record, set_aside
from tetraspark.site.source import read_bytes

EXIT = re.compile(rb"(\d{1,3}) (-?\d{1,20}(?:\.\d{1,20})?)\n?")
LONGEST_EXIT = 60
TIME = struct.Struct("<Qd")
"""A record of a times file: the byte where a line of the log begins, and its Unix time."""


def log_path(run_dir: Path, rank: int) -> Path:
    """Return the file with what a rank has printed."""
    return run_dir / f"rank{rank}.log"


def logged_ranks(run_dir: Path) -> int:
    """Return one more than the last rank that has a log; none without logs."""
    names = (path.stem.removeprefix("rank") for path in run_dir.glob("rank*.log"))
    return max((int(name[:4]) + 1 for name in names if name.isdecimal()), default=0)


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
    """Return how a rank ended, or None where nothing is recorded.

    Raises RunError where what is recorded cannot be read.
    """
    path = exit_path(run_dir, rank)
    if not path.exists():
        return None
    try:
        return parse_exit(read_bytes(path))
    except UsageError as error:
        seen = error.problems[0].seen
    except ValueError as error:
        seen = str(error)
    wanted = "how the rank ended: an exit code and a Unix time"
    raise RunError(Problem(str(path), seen, wanted, f"tetraspark logs {rank} shows its last words"))


def known_exit(run_dir: Path, rank: int) -> tuple[Exit | None, Problem | None]:
    """Return how a rank ended, or why that cannot be read; neither where nothing is recorded."""
    try:
        return read_exit(run_dir, rank), None
    except RunError as error:
        return None, error.problems[0]


def parse_exit(data: bytes) -> Exit:
    """Return the record of an end. Raises ValueError. Pure."""
    found = EXIT.fullmatch(data[:LONGEST_EXIT])
    if found is None or int(found[1]) > 255:
        raise ValueError(f"damaged: {data[:LONGEST_EXIT]!r}")
    return Exit(int(found[1]), float(found[2]))


def record_exit(run_dir: Path, rank: int, end: Exit) -> None:
    """Record how a rank ended; a damaged record of it is set aside."""
    path = exit_path(run_dir, rank)
    try:
        read_exit(run_dir, rank)
    except RunError:
        set_aside(path)
    replace(path, f"{end.code} {end.at}\n")


def read_progress(run_dir: Path, rank: int) -> dict[str, Any] | None:
    """Return what a rank's communicator last wrote about itself, or None.

    Raises RunError for what it cannot have written.
    """
    wanted = "what the rank's communicator writes of itself each second"
    fix = f"a rank that runs writes it anew; else: tetraspark logs {rank}"
    found: dict[str, Any] | None
    found = read_record(progress_path(run_dir, rank), StoredProgress, wanted, fix)
    return found


def write_atomically(path: Path, value: object) -> None:
    """Write JSON so that a reader sees the old text or the new one, never a part."""
    replace(path, json.dumps(value, indent=1) + "\n")


def replace(path: Path, text: str) -> None:
    """Write a text so that a reader sees the old one or the new one, never a part."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


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
