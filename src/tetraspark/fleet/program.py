"""Programs of `fleet.inside`: sent to a node over ssh, run there, answered in JSON."""

import json
from importlib.resources import files
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner

PLACE = 'REQUEST = "{}"'


def program(name: str, request: object) -> bytes:
    """Return the text of a program with a request in it, which is JSON-able."""
    text = files("tetraspark.fleet.inside").joinpath(f"{name}.py").read_text(encoding="utf-8")
    assert text.count(PLACE) == 1
    return text.replace(PLACE, f"REQUEST = {json.dumps(request)!r}").encode()


def ask(
    runner: NodeRunner,
    node: str,
    name: str,
    request: object,
    seconds: float,
    container: str | None = None,
) -> Any:
    """Run a program on a node, or in a container there, and return its answer.

    `seconds` it may take. Raises RunError when the node or container cannot be reached or has no
    python3.
    """
    inside = ("docker", "exec", "--interactive", container) if container else ()
    command = NodeCommand((*inside, "python3", "-I", "-"), program(name, request), seconds)
    result = runner.run(node, command)
    try:
        return json.loads(result.stdout)
    except ValueError as error:
        said = (result.stderr.strip().splitlines() or [""])[-1][:300]
        seen = f"the probe ended with {result.rc}: {said or error}"
        fix = f"on {node}: python3 --version; sudo apt-get install python3"
        raise RunError(Problem(node, seen, "python3 (3.9 or later) on the node", fix)) from error
