"""Probe: look at nodes over ssh, each with one read-only program, all at once."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.program import ask

PROBE_SECONDS = 20.0
"""Twice what the program gives each command, all of which it runs at once."""


def probe(runner: NodeRunner, node: str, wanted: Wanted) -> Facts:
    """Look at one node. Raises RunError when it cannot be reached or has no python3."""
    return Facts.of(node, ask(runner, node, "look", asdict(wanted), PROBE_SECONDS))


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
