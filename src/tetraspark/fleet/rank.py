"""A rank as a machine sees it: the command it is given, and the state it is found in."""

import shlex
from dataclasses import dataclass
from typing import Literal

from tetraspark.errors import Problem

State = Literal["running", "frozen", "restarted", "exited", "absent", "unreachable"]


@dataclass(frozen=True)
class RankCommand:
    """What one rank runs: on which node, which command, with which environment, on which port."""

    rank: int
    node: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    port: int

    def __str__(self) -> str:
        """Return the command as one line to paste into a shell."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env]
        prefix = ["env", *variables] if variables else []
        return " ".join([*prefix, shlex.join(self.argv)])


@dataclass(frozen=True)
class Exit:
    """How a rank's engine ended: exit code (128 + signal when killed) and Unix time."""

    code: int
    at: float

    def __str__(self) -> str:
        signal = self.code - 128
        return f"killed by signal {signal}" if signal > 0 else f"exit code {self.code}"


@dataclass(frozen=True)
class RankState:
    """What was found of a rank.

    `frozen` means that a process of it is stopped (SIGSTOP) or its container paused; `restarted`
    that its container runs anew, `restarts` times, and has lost what it was; `absent` that it was
    never started or left no record; `unreachable` that its node could not be looked at, for which
    `problem` is the reason; of a rank in another state it is why its end cannot be read. `pids`
    are its live processes, as the rank itself counts them; none of a running rank when they could
    not be seen. `out_of_memory` is what Docker calls OOMKilled. `image` is the ID of its
    container's image, "" without a container.
    """

    rank: int
    state: State
    pids: tuple[int, ...] = ()
    exit: Exit | None = None
    restarts: int = 0
    out_of_memory: bool = False
    problem: Problem | None = None
    image: str = ""
