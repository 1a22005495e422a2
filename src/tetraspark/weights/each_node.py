"""The same work on several nodes at once, each with its result or its error."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner

T = TypeVar("T")


def on_each(
    runner: NodeRunner, nodes: Iterable[str], work: Callable[[str], T]
) -> dict[str, T | RunError]:
    """Do the work for every node in a thread of its own; one that fails does not stop others.

    An interrupt ends what runs on the nodes.
    """

    def one(node: str) -> T | RunError:
        try:
            return work(node)
        except RunError as error:
            return error

    names = list(nodes)
    with ThreadPoolExecutor(max(len(names), 1)) as pool:
        try:
            return dict(zip(names, pool.map(one, names), strict=True))
        except BaseException:
            runner.interrupt()
            raise


def parted(found: Mapping[str, T | RunError]) -> tuple[dict[str, T], tuple[Problem, ...]]:
    """Return the results by node, and the problems of the nodes that failed, each once."""
    results = {node: one for node, one in found.items() if not isinstance(one, RunError)}
    errors = (one for one in found.values() if isinstance(one, RunError))
    problems = (problem for error in errors for problem in error.problems)
    return results, tuple(dict.fromkeys(problems))
