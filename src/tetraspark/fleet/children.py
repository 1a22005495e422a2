"""Child processes of this machine whose output is wanted line by line, as it comes."""

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tetraspark.fleet.command import OnLine, Result


class Children:
    """Runs programs to their end, from any thread; `end` kills those that still run."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._ended = False

    def run(
        self,
        argv: Sequence[str],
        timeout: float,
        stdin: bytes | Path | None = None,
        on_line: OnLine | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Run a program; `timeout` in seconds, and its output decoded as UTF-8.

        Raises subprocess.TimeoutExpired after killing it, InterruptedError when `end` did, OSError
        when it cannot be started.
        """
        with _opened(stdin) as source:
            process = self._start(argv, source, env)
        streams = (process.stdout, process.stderr)
        texts: tuple[list[str], list[str]] = ([], [])
        tell = None if on_line is None else _one_at_a_time(on_line)
        readers = [
            threading.Thread(target=_read, args=(stream, text, tell), daemon=True)
            for stream, text in zip(streams, texts, strict=True)
        ]
        for reader in readers:
            reader.start()
        try:
            process.wait(timeout)
        finally:
            process.kill()
            process.wait()
            with self._lock:
                self._running.discard(process)
                cut = self._ended
            # A shared ssh session holds the pipes of a client that was killed until the command
            # on the node ends: its readers are left to themselves then.
            for reader in readers:
                reader.join(timeout=None if process.returncode >= 0 and not cut else 0.5)
        if cut and process.returncode < 0:
            raise InterruptedError(f"{argv[0]} was ended")
        return Result(process.returncode, "".join(texts[0]), "".join(texts[1]))

    def _start(
        self,
        argv: Sequence[str],
        source: IO[bytes],
        env: Mapping[str, str] | None,
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise InterruptedError("nothing is started any more")
            process = subprocess.Popen(
                argv,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
            )
            self._running.add(process)
        return process

    def end(self) -> None:
        """Kill what still runs, and start nothing more."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()


def _opened(stdin: bytes | Path | None) -> IO[bytes]:
    """Return a file to read from; bytes stay in memory, for they may be a secret."""
    if isinstance(stdin, Path):
        return stdin.open("rb")
    if stdin is None:
        return Path(os.devnull).open("rb")
    file = os.fdopen(os.memfd_create("stdin"), "r+b")
    file.write(stdin)
    file.seek(0)
    return file


def _one_at_a_time(on_line: OnLine) -> OnLine:
    """Keep the two streams from calling at once."""
    lock = threading.Lock()

    def tell(line: str) -> None:
        with lock:
            on_line(line)

    return tell


def _read(stream: IO[bytes], text: list[str], on_line: OnLine | None) -> None:
    """Collect a stream; a line ends at its newline, and the last one may lack it."""
    with stream:
        for raw in stream:
            line = raw.decode(errors="replace")
            text.append(line)
            if on_line is not None:
                on_line(line.rstrip("\r\n"))
