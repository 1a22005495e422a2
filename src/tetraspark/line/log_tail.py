"""The logs of all ranks of a run, read as they grow."""

from pathlib import Path

from tetraspark.fleet.runner import Runner
from tetraspark.line.engine_log import Line, parse, timestamp


class LogTail:
    """Every complete line that the ranks of a run have printed so far."""

    def __init__(self, runner: Runner, run_dir: Path, ranks: int) -> None:
        self._runner = runner
        self._run_dir = run_dir
        self._offsets = [0] * ranks
        self._times = [0.0] * ranks
        self.lines: list[Line] = []

    def read(self) -> list[Line]:
        """Return the new lines of all ranks; a line still being written is left for later."""
        fresh: list[Line] = []
        for rank, offset in enumerate(self._offsets):
            data = self._runner.read_log(self._run_dir, rank, offset)
            complete = data[: data.rfind(b"\n") + 1]
            self._offsets[rank] += len(complete)
            texts = complete.decode(errors="replace").splitlines()
            lines = parse(rank, texts, self._times[rank])
            if lines:
                self._times[rank] = lines[-1].time
            fresh += lines
        self.lines += fresh
        return fresh

    def last(self, rank: int) -> Line | None:
        """Return the newest line of one rank that tells something, or None.

        Lines without a time stamp are warnings' source lines and progress bars more often than
        news, so they count only while there is no other.
        """
        mine = [line for line in self.lines if line.rank == rank]
        stamped = (line for line in reversed(mine) if timestamp(line.text) is not None)
        return next(stamped, mine[-1] if mine else None)
