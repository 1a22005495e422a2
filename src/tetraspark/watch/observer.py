"""Looks at a line: its ranks, nodes and engine, and a canary through the public endpoint."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tetraspark import __version__
from tetraspark.errors import RunError
from tetraspark.fleet.meminfo import Memory, read_meminfo
from tetraspark.fleet.run_files import meminfo_path
from tetraspark.fleet.runner import Runner
from tetraspark.line.api import Api, api_of
from tetraspark.line.engine_log import Line
from tetraspark.line.log_tail import LogTail
from tetraspark.line.ranks import Ranks, read_ranks
from tetraspark.line.run import Run, RunStore
from tetraspark.line.status import judge_without_run
from tetraspark.site.schema import Canary, Watch
from tetraspark.watch.engine_metrics import read_log, read_metrics
from tetraspark.watch.look import NOTHING_TOLD, Look
from tetraspark.watch.observation import CanarySample, EngineSample
from tetraspark.watch.samples import rank_sample, root_of

METRICS_SECONDS = 3.0
KEPT_LINES = 2000
"""Fatal lines that are remembered: an engine that serves for months survives many."""
MEMINFO = Path("/proc/meminfo")


class Observer:
    """Looks at the newest run of a line, again and again. `clock` is monotonic, `wall` is not."""

    def __init__(
        self,
        runner: Runner,
        store: RunStore,
        key: str | None,
        canary: Canary,
        settings: Watch,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._runner = runner
        self._store = store
        self._key = key
        self._canary = canary
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._run: Run | None = None
        self._tail: LogTail | None = None
        self._logged = NOTHING_TOLD
        self._asked: float | None = None
        self.versions: Mapping[str, str] = {"tetraspark": __version__}

    @property
    def run(self) -> Run | None:
        """The run that was looked at last."""
        return self._run

    def look(self, doubtful: bool = False) -> Look:
        """Look once; a canary is asked when it is due, or when the line is `doubtful`."""
        at = self._clock()
        run = self._store.latest()
        if run is None:
            verdict, reason = judge_without_run(self._runner.present(self._store.root))
            return Look(at, None, verdict, reason)
        try:
            return self._look(at, run, doubtful)
        except (RunError, OSError) as error:
            return Look(at, run.id, "unknown", str(error))

    def metrics(self) -> str | None:
        """Return the engine's own text of counters, or None where it gives none."""
        return None if self._run is None else self._api(self._run).text("/metrics", METRICS_SECONDS)

    def _look(self, at: float, run: Run, doubtful: bool) -> Look:
        plan = run.plan()
        nodes = [command["node"] for command in plan["ranks"]]
        tail = self._follow(run, len(nodes))
        found = read_ranks(run, nodes, self._runner, tail)
        self._remember(found.lines)
        reachable = found.ranks[0].state not in ("unreachable", "exited", "absent")
        engine, canary, silent = self._logged, None, False
        if found.verdict in ("ready", "degraded") and reachable:
            api = self._api(run)
            if doubtful or self._due(at):
                self._asked = at
                canary, silent = self._ask(api)
            engine = self._engine(api)
        return Look(
            at=at,
            run=run.id,
            verdict=found.verdict,
            reason=found.reason,
            rank=found.rank,
            ranks=tuple(
                rank_sample(one, _memory(run, one.rank, plan["kind"])) for one in found.ranks
            ),
            engine=engine,
            canary=canary,
            silent=silent,
            root=_root(found),
            damaged=found.damaged,
        )

    def _follow(self, run: Run, ranks: int) -> LogTail:
        """Return what follows the logs of a run, a new one for a new run."""
        if self._tail is None or self._run is None or self._run.id != run.id:
            self._run, self._tail = run, LogTail(run.folder, ranks)
            self._logged, self._asked = NOTHING_TOLD, None
        return self._tail

    def _remember(self, lines: list[Line]) -> None:
        """Take versions and counts out of new lines, and forget old ones that were survived."""
        assert self._tail is not None
        for line in lines:
            if line.receipt is not None and line.receipt["tetraspark"] == "engine":
                told = {key: line.receipt.get(key) for key in ("engine", "plugin")}
                self.versions = {**self.versions, **{k: str(v) for k, v in told.items() if v}}
        self._logged = read_log((line.text for line in lines if line.rank == 0), self._logged)
        known = self._tail.lines
        if len(known) > 2 * KEPT_LINES:
            receipts = [line for line in known[:-KEPT_LINES] if line.receipt is not None]
            known[:] = [*receipts, *known[-KEPT_LINES:]]

    def _api(self, run: Run) -> Api:
        return api_of(run.plan(), self._key, self._runner)

    def _due(self, at: float) -> bool:
        return self._asked is None or at - self._asked >= self._settings.canary_seconds

    def _ask(self, api: Api) -> tuple[CanarySample, bool]:
        """Ask for the canary; return what came of it, and whether nothing came at all."""
        asked_at, begun = self._wall(), self._clock()
        limit = self._settings.canary_deadline_seconds
        try:
            answer = api.chat(self._canary.prompt, self._canary.max_tokens, limit)
        except RunError as error:
            seen = error.problems[0].seen
            return CanarySample(asked_at, None, False, seen), _nothing_came(seen)
        seconds = self._clock() - begun
        if self._canary.accepts(answer.text):
            return CanarySample(asked_at, seconds, True, ""), False
        reason = f"{answer.text[:200]!r} is without {self._canary.expect!r}"
        return CanarySample(asked_at, seconds, False, reason), False

    def _engine(self, api: Api) -> EngineSample:
        text = api.text("/metrics", METRICS_SECONDS)
        return (read_metrics(text) if text else None) or self._logged


def _memory(run: Run, rank: int, kind: str) -> Memory | None:
    """Return the memory of a rank's node: of a fleet's, what the runner has brought of it."""
    path = MEMINFO if kind == "local" else meminfo_path(run.folder, rank)
    try:
        return read_meminfo(path.read_text(encoding="utf-8"))
    except OSError:
        return None


def _nothing_came(seen: str) -> bool:
    """Tell silence from an answer that was not wanted: an error of HTTP, another shape."""
    return not seen.startswith(("HTTP ", "an answer of another shape"))


def _root(found: Ranks) -> tuple[int, str] | None:
    return next((root for one in found.ranks if (root := root_of(one.collectives))), None)
