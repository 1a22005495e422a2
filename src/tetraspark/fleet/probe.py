"""Probe: look at nodes over ssh, each with one read-only program, all at once."""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.resources import files

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.facts import Facts, Wanted

PROBE_SECONDS = 15.0
PLACE = 'REQUEST = "{}"'


def script(wanted: Wanted) -> bytes:
    """Return the program that looks at what is wanted."""
    text = files("tetraspark.fleet.inside").joinpath("look.py").read_text(encoding="utf-8")
    assert text.count(PLACE) == 1
    return text.replace(PLACE, f"REQUEST = {json.dumps(asdict(wanted))!r}").encode()


def probe(runner: NodeRunner, node: str, wanted: Wanted) -> Facts:
    """Look at one node. Raises RunError when it cannot be reached or has no python3."""
    command = NodeCommand(("python3", "-I", "-"), stdin=script(wanted), timeout=PROBE_SECONDS)
    result = runner.run(node, command)
    try:
        return Facts.of(node, json.loads(result.stdout))
    except (ValueError, KeyError, TypeError) as error:
        seen = f"the probe ended with {result.rc}: {_last(result.stderr) or error}"
        fix = f"on {node}: python3 --version; sudo apt-get install python3"
        raise RunError(Problem(node, seen, "python3 (3.9 or later) on the node", fix)) from error


def probe_all(
    runner: NodeRunner, wanted: Mapping[str, Wanted] | Iterable[tuple[str, Wanted]]
) -> dict[str, Facts | RunError]:
    """Look at nodes in parallel; a node that cannot be looked at gives its error."""
    asked = dict(wanted)

    def one(node: str) -> Facts | RunError:
        try:
            return probe(runner, node, asked[node])
        except RunError as error:
            return error

    with ThreadPoolExecutor(max(len(asked), 1)) as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))


def _last(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:300]
