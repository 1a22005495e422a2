"""A line as its watch needs it."""

from dataclasses import dataclass

from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.runner import Runner
from tetraspark.line.run import RunStore
from tetraspark.site.load import LoadedSite
from tetraspark.watch.observer import Observer


@dataclass(frozen=True)
class Watched:
    """The line, what looks at it, and `nodes`, which runs commands where its ranks are."""

    loaded: LoadedSite
    runner: Runner
    store: RunStore
    nodes: NodeRunner
    observer: Observer
