"""The logs of all ranks of a run: as they grow, or their two ends."""

from collections.abc import Iterator
from pathlib import Path

from tetraspark.fleet.run_files import line_times, log_size, read_log
from tetraspark.line.engine_log import Line, parse, timestamp

# A start fits the head, with room to spare; the tail holds what a rank said last. A log grows for
# as long as the line serves, so nothing reads it whole.
HEAD_BYTES = 1 << 20
TAIL_BYTES = 1 << 18
BYTES_A_LINE = 400


def log_end(run_dir: Path, rank: int) -> str:
    """Return the last words of a rank."""
    begin = max(log_size(run_dir, rank) - TAIL_BYTES, 0)
    return read_log(run_dir, rank, begin).decode(errors="replace")


class LogTail:
    """Follows the logs of a run; remembers receipts, fatal lines, and each rank's last word.

    It reads the run's files: a runner's `inspect` brings them up to date.
    """

    def __init__(self, run_dir: Path, ranks: int) -> None:
        self._run_dir = run_dir
        self._offsets = [0] * ranks
        self._times = [0.0] * ranks
        self._last: list[Line | None] = [None] * ranks
        self.lines: list[Line] = []

    def read(self) -> list[Line]:
        """Return the new lines of all ranks; a line still being written is left for later."""
        return [line for rank in range(len(self._offsets)) for line in self._read(rank)]

    def read_ends(self) -> list[Line]:
        """Return the beginning and the end of each log, and leave out what lies between."""
        found = []
        for rank in range(len(self._offsets)):
            found += self._read(rank, HEAD_BYTES)
            size = log_size(self._run_dir, rank)
            if size - TAIL_BYTES > self._offsets[rank]:
                self._skip_to(rank, size - TAIL_BYTES)
            found += self._read(rank)
        return found

    def skip_to_last(self, rank: int, lines: int) -> list[Line]:
        """Return the last lines of one rank, and follow it from there."""
        size = log_size(self._run_dir, rank)
        wanted = max(lines, 1) * BYTES_A_LINE
        while True:
            self._offsets[rank] = 0
            if size > wanted:
                self._skip_to(rank, size - wanted)
            found = self._read(rank)
            if len(found) >= lines or wanted >= size:
                return found[max(0, len(found) - lines) :]
            wanted *= 4

    def last(self, rank: int) -> Line | None:
        """Return the newest line of one rank that tells something, or None.

        Lines without a time stamp are warnings' source lines and progress bars more often than
        news, so they count only while there is no other.
        """
        return self._last[rank]

    def _skip_to(self, rank: int, offset: int) -> None:
        """Go to the first whole line after an offset."""
        data = read_log(self._run_dir, rank, offset, HEAD_BYTES)
        self._offsets[rank] = offset + data.find(b"\n") + 1

    def _read(self, rank: int, size: int = -1) -> list[Line]:
        data = read_log(self._run_dir, rank, self._offsets[rank], size)
        complete = data[: data.rfind(b"\n") + 1]
        begin = self._offsets[rank]
        self._offsets[rank] += len(complete)
        lines = parse(rank, self._timed(rank, complete, begin), self._times[rank])
        if lines:
            self._times[rank] = lines[-1].time
            self._last[rank] = self._news(rank, lines)
        self.lines += [line for line in lines if line.receipt is not None or line.fatal]
        return lines

    def _timed(self, rank: int, data: bytes, begin: int) -> Iterator[tuple[str, float | None]]:
        """Yield lines with their times, where these are known; a progress bar is many lines."""
        times = line_times(self._run_dir, rank, begin, begin + len(data))
        for line in data.split(b"\n")[:-1]:
            for text in line.decode(errors="replace").splitlines():
                yield text, times.get(begin)
            begin += len(line) + 1

    def _news(self, rank: int, lines: list[Line]) -> Line:
        stamped = (line for line in reversed(lines) if timestamp(line.text) is not None)
        plain = (line for line in reversed(lines) if not line.text[0].isspace())
        found = next(stamped, None)
        return found or self._last[rank] or next(plain, lines[-1])
