"""Programs of the node, and the one way to refuse: runs inside the node, stdlib alone."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

SECONDS = 20.0
NO_PROGRAM = 127
NOISE = "We have an error talking to the kernel"
"""tc says it after the cause."""
TOO_SLOW = 124


@dataclass(frozen=True)
class Ended:
    """How a program ended: 127 when there is no such program, 124 when it took too long."""

    rc: int
    out: str
    err: str


class Refusal(Exception):
    """What keeps the node from doing what was asked: problems as the caller shows them."""

    def __init__(self, *problems: dict[str, str]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(f"{one['where']}: {one['seen']}" for one in problems))


def problem(where: str, seen: str, wanted: str, fix: str) -> dict[str, str]:
    """Return a problem, without the node's name: the caller knows it."""
    return {"where": where, "seen": seen, "wanted": wanted, "fix": fix}


def environment() -> dict[str, str]:
    """Return the environment of every program: English messages, and the folders of root's."""
    path = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    return {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path}


def run(argv: list[str], seconds: float = SECONDS) -> Ended:
    """Run a program to its end."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=environment(),
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return Ended(TOO_SLOW, "", f"no end after {seconds:g} s")
    except OSError as error:
        return Ended(NO_PROGRAM, "", f"{argv[0]}: {error.strerror}")
    return Ended(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def must(argv: list[str], seconds: float = SECONDS) -> str:
    """Run a program that has to succeed, and return what it printed. Raises Refusal."""
    done = run(argv, seconds)
    if done.rc:
        lines = [one for one in (done.err or done.out).strip().splitlines() if NOISE not in one]
        last = (lines or [""])[-1]
        seen = f"`{' '.join(argv)}` ended with {done.rc}: {last[:300]}"
        raise Refusal(problem(argv[0], seen, "exit code 0", "run it on the node as root, and look"))
    return done.out


def listed(argv: list[str]) -> list[dict[str, Any]]:
    """Return the JSON list that a program of iproute2 prints. Raises Refusal."""
    text = must(argv)
    try:
        found = json.loads(text or "[]")
    except ValueError as error:
        wanted = "JSON: iproute2 5.10 or later"
        seen = f"`{' '.join(argv)}` printed no JSON: {error}"
        raise Refusal(problem(argv[0], seen, wanted, "ip -V; apt-get install iproute2")) from error
    return [one for one in found if one]
