"""The timer: a process of the node's own that undoes an apply nobody confirmed.

It is in no session of ssh, holds no file of it, and knows all that it needs when it starts.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tetraspark.ring.inside import journal as journals
from tetraspark.ring.inside import store, undo
from tetraspark.ring.inside.say import Refusal

SLICE = 0.5
AGAIN = 5.0
LOG = store.STATE / "timer.log"


def start(token: str) -> int:
    """Start the timer of an apply, whose deadline is in the journal; returns its pid."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.chdir("/")
            grandchild = os.fork()
            if grandchild:
                os.write(send, str(grandchild).encode())
                os._exit(0)
            _detach()
            _wait(token)
        finally:
            os._exit(0)
    os.close(send)
    os.waitpid(child, 0)
    with os.fdopen(receive) as pipe:
        return int(pipe.read())


def alive(pid: int | None) -> bool:
    """Say whether the timer of a journal still runs; a pid alone may be another's by now."""
    if pid is None:
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"python" in words[0]


def _detach() -> None:
    """Let go of the caller's streams and of its lock."""
    null, log = os.open(os.devnull, os.O_RDONLY), os.open(LOG, os.O_WRONLY | os.O_CREAT, 0o644)
    for number, file in ((0, null), (1, log), (2, log)):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 20 else 1 << 16)


def _wait(token: str) -> None:
    """Wait for the deadline, the confirmation, or another apply; undo at the deadline."""
    while True:
        try:
            journal = journals.read()
            if journal is None or not journal.awaits(token):
                return
            if journal.seconds_left <= 0:
                undo.expire(token)
                time.sleep(AGAIN if journals.read() else 0)
            else:
                time.sleep(min(SLICE, max(journal.seconds_left, 0.01)))
        except (Refusal, OSError) as error:
            os.write(2, f"{error}\n".encode())
            time.sleep(AGAIN)
