"""The one watch of a line: who it is, starting it beside the line, ending it."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from tetraspark.errors import Problem, RunError
from tetraspark.fleet import file_lock
from tetraspark.fleet.state_home import require_writable
from tetraspark.watch.record import Page, Record

PROGRAM = "from tetraspark.cli.main import run; run()"
END_SECONDS = 15.0
START_SECONDS = 30.0
PID_SECONDS = 1.0
SHOWN_CHARACTERS = 600
MOST_PID = 1 << 22
"""Of Linux on 64-bit machines (proc(5), pid_max)."""


class WatchProcess:
    """The watch of the line whose folder is `root`: a lock that it holds, with its pid inside."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file = root / "watch.pid"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Be the watch of the line.

        Raises RunError when there is one, UsageError where nothing can be written.
        """
        require_writable(self._root)
        with self._file.open("a+", encoding="utf-8") as file:
            try:
                file_lock.take(file)
            except BlockingIOError:
                raise self._taken() from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def pid(self) -> int | None:
        """Return the pid of the watch that is at work, or None: a lock dies with its process.

        To ask keeps no watch that is just starting from taking the lock.
        """
        deadline = time.monotonic() + PID_SECONDS
        while file_lock.held(self._file) is not None:
            text = self._file.read_text(encoding="utf-8", errors="replace").strip()
            if text.isascii() and text.isdigit() and 1 < int(text[:10]) < MOST_PID:
                return int(text)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)  # It has the lock, and has not said yet who it is.
        return None

    def end(self) -> bool:
        """End the watch, if there is one; tell whether there was. Raises RunError if it stays."""
        pid = self.pid()
        if pid is None:
            return False
        deadline = time.monotonic() + END_SECONDS
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
            while self.pid() == pid:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                    deadline += END_SECONDS
                time.sleep(0.05)
        return True

    def start(self, site: Path, log: Path, words: Sequence[str] = ()) -> Page:
        """Start a watch in the background, in the place of one that is at work.

        `words` are further ones of its command. Returns where its page is. Raises RunError when it
        ends at once, or has not come up in time.
        """
        self.end()
        record = Record(self._root)
        record.hide_page()
        with log.open("ab") as file:
            begin = file.tell()
            alive = _in_background(command("watch", site, "--until-stopped", *words), file)
        with alive:
            deadline = time.monotonic() + START_SECONDS
            while True:
                ended = bool(select.select([alive], [], [], 0.05)[0])
                if (page := record.page()) is not None:
                    return page
                if ended or time.monotonic() > deadline:
                    raise _not_up(site, log, begin, ended)

    def _taken(self) -> RunError:
        return RunError(
            Problem(
                where=str(self._file),
                seen=f"process {self.pid()} watches this line",
                wanted="one watch a line",
                fix="tetraspark status shows what it says and where its page is; "
                "`tetraspark watch --once` looks once",
            )
        )


def command(verb: str, site: Path, *words: str) -> list[str]:
    """Return the argv of a verb of this same installation."""
    return [sys.executable, "-c", PROGRAM, verb, "--site", str(site.resolve()), *words]


def _in_background(argv: list[str], log: IO[bytes]) -> IO[bytes]:
    """Start a process that outlives this one; return what is at its end once the process is."""
    reader, writer = os.pipe()
    alive = os.fdopen(reader, "rb")
    try:
        # The process never writes there: the system closes it, however the process ends.
        subprocess.run(
            ["setsid", "--fork", *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writer,),
            check=True,
        )
    except BaseException:
        alive.close()
        raise
    finally:
        os.close(writer)
    return alive


def _not_up(site: Path, log: Path, begin: int, ended: bool) -> RunError:
    seen = f"the watch has not come up in {START_SECONDS:g} s"
    if ended:
        words = log.read_bytes()[begin:].decode(errors="replace").split()
        seen = f"the watch has ended: {' '.join(words)[-SHOWN_CHARACTERS:]}"
    fix = f"tail {log}; `tetraspark watch --site {site}` is one in the foreground"
    return RunError(Problem(str(log), seen, "a watch beside the line", fix))
