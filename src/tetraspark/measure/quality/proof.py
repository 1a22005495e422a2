"""The sandbox proves itself before it runs anything: a program tries every way out of it."""

import contextlib
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.measure.quality.inside.probe import ATTEMPTS
from tetraspark.measure.quality.sandbox import DEFAULT, OWN, Ran, program, run_inside

FIX = "tetraspark quality --only JSON,NUMBER,FORMAT"


class Proven:
    """A sandbox that has held. Only `prove` makes one, and model code runs in nothing else."""

    _key = object()

    def __init__(self, key: object) -> None:
        if key is not Proven._key:
            raise TypeError("a sandbox is proven by prove()")

    def answer(self, code: str, calls: list[tuple[str, str]]) -> Ran:
        """Run code and calls (set-up, expression) of it: a JSON line a call, see inside/answer.py.

        Raises RunError when the sandbox cannot be built.
        """
        return run_inside(program("answer"), {"code": code, "calls": calls})

    @classmethod
    def after(cls, reply: Mapping[str, Any]) -> "Proven":
        """Return it when every attempt was made and none got out, else raise RunError."""
        missing = sorted({one.__name__ for one in ATTEMPTS} - set(reply.get("tried", ())))
        escaped = [f"{name}: {what}" for name, what in reply.get("escaped", {}).items()]
        if missing:
            raise _refused(f"not tried: {', '.join(missing)}")
        if escaped:
            raise _refused("; ".join(escaped))
        return cls(cls._key)


def prove() -> Proven:
    """Try to get out of a sandbox. Raises RunError when there is none, or something got out."""
    with _bait() as (request, touched):
        ran = run_inside(program("probe"), request)
        try:
            reply = json.loads(ran.output)
        except ValueError as error:
            ended = "ran out of time" if ran.late else "told nothing"
            raise _refused(f"the program that tries to get out {ended}") from error
        touches = touched()
        if touches:
            reply["escaped"] |= {"touched": touches}
        return Proven.after(reply)


@contextlib.contextmanager
def _bait() -> Iterator[tuple[dict[str, Any], Callable[[], str]]]:
    """Lay out what must not be reached: sockets that listen, files, the process itself."""
    with contextlib.ExitStack() as held:
        tcp = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = f"tetraspark-{secrets.token_hex(8)}"
        unnamed = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        unnamed.bind(f"\0{abstract}")
        unnamed.listen()
        folders = _folders()
        baited = [*folders, tempfile.gettempdir()]
        canaries = [held.enter_context(_canary(folder)) for folder in baited]
        request = {
            "ports": [tcp.getsockname()[1], udp.getsockname()[1]],
            "abstract": abstract,
            "canaries": [*canaries, "/etc/passwd", "/proc/self/mounts"],
            "folders": ["/", "/usr", "/usr/bin", "/etc", "/var/tmp", "/dev/shm", *folders],
            "pid": os.getpid(),
            "processes": DEFAULT.processes,
            "room": DEFAULT.room,
            "memory": DEFAULT.memory,
        }

        def touched() -> str:
            """Return which socket was reached, whatever the program says."""
            found = []
            for name, one in (("tcp", tcp), ("udp", udp), ("abstract", unnamed)):
                one.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    one.recv(1) if name == "udp" else one.accept()[0].close()
                    found.append(f"{name} was reached")
            return ", ".join(found)

        yield request, touched


def _folders() -> list[str]:
    """Return folders that the invoker may write to, but for the one the sandbox has itself."""
    found = [str(Path.cwd())]
    with contextlib.suppress(RuntimeError):  # not everybody has a home
        found.append(str(Path.home()))
    return [one for one in dict.fromkeys(found) if one != OWN and os.access(one, os.W_OK)]


@contextlib.contextmanager
def _canary(folder: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".tetraspark-canary-") as file:
        file.write("canary")
        file.flush()
        yield file.name


def _refused(seen: str) -> RunError:
    wanted = "a sandbox that nothing gets out of; code of a model runs in no other"
    return RunError(Problem("sandbox", seen, wanted, FIX))
