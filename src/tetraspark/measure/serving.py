"""A line served for a measurement: started by it, stopped by it, never somebody else's."""

import contextlib
from collections.abc import Iterator

from tetraspark.fleet.runner import Runner
from tetraspark.line.plan import Plan
from tetraspark.line.run import RunStore
from tetraspark.line.serve import Served, serve, served_already
from tetraspark.line.stop import stop
from tetraspark.site.load import LoadedSite


def require_idle(line: str, runner: Runner, store: RunStore) -> None:
    """Raise RunError when the line is being served: a measurement would end it."""
    there = runner.present(store.root)
    if there.running:
        raise served_already(line, there, runner.unit)


@contextlib.contextmanager
def served(
    loaded: LoadedSite, plan: Plan, key: str | None, runner: Runner, store: RunStore
) -> Iterator[Served]:
    """Serve the line for the length of a `with`. Raises RunError as `serve` does."""
    ready = serve(loaded, plan, key, runner, store, False, lambda progress: None)
    try:
        yield ready
    finally:
        stop(runner, store, loaded.site.deadlines.stop_seconds)
