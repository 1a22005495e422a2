"""Runs in a node and answers requests to the node program, each in a process of its own.

One JSON object a line: `request`, and `cut`, the number of a write to the disk at which that
process is killed, with `after` whether it still happens. Standard input's end ends it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tetraspark.ring.inside import main, store


def cut_off(number: int, after: bool) -> None:
    """Make the `number`-th write of this process the last thing that it does."""
    real: Callable[..., None] = store.write
    count = 0

    def write(path: Path, data: bytes, mode: int = 0o644) -> None:
        nonlocal count
        count += 1
        if count == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        real(path, data, mode)
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    store.write = write


def child(asked: dict[str, Any], pipe: int) -> NoReturn:
    if asked.get("cut"):
        cut_off(asked["cut"], asked.get("after", False))
    answer = main.answer(asked["request"])
    os.write(pipe, json.dumps(answer).encode())
    os._exit(0)


def serve() -> None:
    for line in sys.stdin:
        receive, send = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(receive)
            child(json.loads(line), send)
        os.close(send)
        with os.fdopen(receive) as pipe:
            answer = pipe.read()
        os.waitpid(pid, 0)
        print(answer or '{"killed": true}', flush=True)


serve()
