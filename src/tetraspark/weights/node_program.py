"""Send a program of `weights/inside` to a node, follow its progress, and take its result."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner

PLACE = 'REQUEST = "{}"'
STEP_SECONDS = 120.0
"""For what looks at names and sizes alone; a folder on a slow server takes its time."""


@dataclass(frozen=True)
class Progress:
    """How far a node is: `done` of `total` bytes in a phase, and the file or step at hand."""

    node: str
    phase: str
    done: int = 0
    total: int = 0
    text: str = ""


Observe = Callable[[Progress], None]


def script(name: str, request: Mapping[str, Any]) -> bytes:
    """Return a program with its request in it."""
    text = files("tetraspark.weights.inside").joinpath(f"{name}.py").read_text(encoding="utf-8")
    assert text.count(PLACE) == 1
    return text.replace(PLACE, f"REQUEST = {json.dumps(request)!r}").encode()


def run_program(
    runner: NodeRunner,
    node: str,
    name: str,
    request: Mapping[str, Any],
    seconds: float = STEP_SECONDS,
    observe: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Run a program on a node and return what it printed last.

    `observe` gets each line of progress: `done`, `total` in bytes and `text`. Raises RunError
    when the node cannot be reached, has no python3, or the program did not come to its end.
    """

    def on_line(line: str) -> None:
        found = _object(line)
        if observe is not None and "total" in found:
            observe(found)

    command = NodeCommand(("python3", "-I", "-"), stdin=script(name, request), timeout=seconds)
    result = runner.run(node, command, on_line)
    found = _object((result.stdout.strip().splitlines() or [""])[-1])
    if result.rc or not found:
        seen = (result.stderr.strip().splitlines() or ["no message"])[-1][:300]
        fix = f"on {node}: python3 --version; then run the same command again"
        wanted = "python3 (3.9 or later) on the node, and the program's end"
        raise RunError(Problem(node, f"{name} ended with {result.rc}: {seen}", wanted, fix))
    return found


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
