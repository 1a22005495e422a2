"""A line of two ranks on this machine, whose engine is a stand-in, and a watch on it."""

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tetraspark.engine.progress import progress_path
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.port import free_ports
from tetraspark.fleet.process import Process, labelled
from tetraspark.fleet.rank import RankCommand
from tetraspark.fleet.runner import Inventory
from tetraspark.fleet.this_machine import ThisMachine
from tetraspark.line.local_plan import local_plan
from tetraspark.line.run import RunStore
from tetraspark.line.serve import serve
from tetraspark.site.load import load_site
from tetraspark.watch.board import Board
from tetraspark.watch.observation import Observation
from tetraspark.watch.observer import Observer
from tetraspark.watch.watch import Watch
from tetraspark.watch.watched import Watched

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "tests" / "line" / "stand_in_engine.py"
NAME = "stood-in"
METRICS = """sglang:num_running_reqs {running}
sglang:num_queue_reqs 0.0
sglang:realtime_tokens_total{{mode="decode"}} {generated}
sglang:realtime_tokens_total{{mode="prefill_compute"}} {prefilled}
sglang:full_token_usage 0.25
"""


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class StoodIn:
    """The line. Its site has a watch that sees a wedge after a few seconds of its own clock."""

    def __init__(self, folder: Path, watch: str = "", state: Path | None = None) -> None:
        self.folder = folder
        self.port, *others = free_ports(4)
        self.site = folder / "site.toml"
        self.site.write_text(
            f'name = "{NAME}"\nkind = "local"\n'
            'nodes = [{ name = "node0" }, { name = "node1" }]\n'
            f'[model]\npath = "{ROOT}/models/tiny"\nserved_name = "tiny"\n'
            'canary = { prompt = "6 x 7", expect = "42" }\n'
            f"[engine]\ntp = 2\nkv_tokens = 4096\n[api]\nport = {self.port}\n"
            "[deadlines]\nstop_seconds = 1\n"
            "[watch]\ninterval_seconds = 0.2\ncanary_seconds = 60.0\nstall_seconds = 30.0\n"
            f"canary_deadline_seconds = 0.3\nport = 0\n{watch}\n"
        )
        self.loaded = load_site(self.site)
        self.state = state or folder / "state"
        self.store, self.runner = RunStore(NAME, self.state), LocalRunner()
        self.clock, self.wall = Clock(), Clock()
        self._others = others
        self.behave()

    def behave(self, **behaviour: object) -> None:
        """Say what the stand-ins do from now on."""
        file = self.folder / "behaviour.json"
        file.with_suffix(".part").write_text(json.dumps({"told": {}, **behaviour}))
        file.with_suffix(".part").replace(file)

    def wedge(self, running: int = 1) -> None:
        """Let the engine stand still with requests that run."""
        metrics = METRICS.format(running=running, generated=100, prefilled=50)
        self.behave(silent=True, metrics=metrics)

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve for the length of a `with`; gives the run's id."""
        ports = (self.port, *self._others)
        plan = local_plan(self.loaded, Inventory(sys.executable, "0.5.23", (0,), (), ports))
        flags = ("--port", str(self.port), "--model-path", str(self.folder), "--nnodes", "2")
        argv = (sys.executable, str(ENGINE), *flags, "--node-rank")
        ranks = tuple(
            RankCommand(rank, f"node{rank}", (*argv, str(rank)), (), self.port) for rank in range(2)
        )
        plan = dataclasses.replace(plan, ranks=ranks)
        try:
            yield serve(
                self.loaded, plan, None, self.runner, self.store, True, lambda progress: None
            ).run
        finally:
            self.runner.stop(self.store.root, 1, ())

    def watched(self) -> Watched:
        """Return the line as a watch needs it, with clocks that are set by hand."""
        site = self.loaded.site
        observer = Observer(
            self.runner, self.store, None, site.model.canary, site.watch, self.clock, self.wall
        )
        return Watched(self.loaded, self.runner, self.store, ThisMachine(), observer)

    def watch(self, said: list[Observation]) -> Watch:
        """Return a watch that appends each change of state to `said`."""
        return Watch(self.watched(), Board(), said.append, 10.0, self.clock, self.wall)

    def looks(self, watch: Watch, count: int, seconds: float = 10.0) -> list[Observation]:
        """Look so often, with so much time between two looks by the watch's clock."""
        found = []
        for _ in range(count):
            self.clock.now += seconds
            self.wall.now += seconds
            one = watch.look()
            assert one is not None
            found.append(one)
        return found

    def tells(self, run: str, rank: int, **told: Any) -> None:
        """Write what the communicator of a rank would say of itself."""
        path = progress_path(self.store.root / run, rank)
        path.write_text(json.dumps({"transport": "shm", "verdict": "ready", **told}))

    def processes(self, rank: int) -> list[Process]:
        """Return the processes of a rank."""
        return [one for one in labelled(self.store.root) if one.rank == rank]

    def signal(self, rank: int, number: signal.Signals) -> None:
        """Send a signal to the engine of a rank."""
        for one in self.processes(rank):
            if not one.leads:
                os.kill(one.pid, number)
