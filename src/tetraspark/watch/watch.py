"""The watch: looks, judges, says, and acts once on a wedge or an outage."""

import os
import time
from collections import deque
from collections.abc import Callable

from tetraspark.errors import RunError, TetrasparkError
from tetraspark.line.quiet import looking
from tetraspark.line.run import READY, STOPPED
from tetraspark.site.watch import OnWedge
from tetraspark.watch.act import act, acted_findings, key_findings
from tetraspark.watch.board import Board
from tetraspark.watch.findings import damaged, findings
from tetraspark.watch.judge import Judgement, Limits, doubtful, ended, judge
from tetraspark.watch.look import Look
from tetraspark.watch.observation import Finding, Observation
from tetraspark.watch.record import RESTARTS, Record
from tetraspark.watch.watched import Watched

RATES = 600
LOOKS = 100
"""Remembered at least; more where a wedge takes more to be one."""


class Watch:
    """Watches one line. `tell` gets each observation that differs in state from the one before.

    `clock` is monotonic: what the wall clock does moves only the times that are shown.
    """

    def __init__(
        self,
        watched: Watched,
        board: Board,
        tell: Callable[[Observation], None],
        interval: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._watched = watched
        self._settings = watched.loaded.site.watch
        self._interval = interval or self._settings.interval_seconds
        self._board = board
        self._tell = tell
        self._clock = clock
        self._wall = wall
        self._record = Record(watched.store.root)
        enough = LOOKS + int(2 * self._settings.stall_seconds / self._interval)
        self._looks: deque[Look] = deque(maxlen=enough)
        self._rates: deque[tuple[float, float]] = deque(maxlen=RATES)
        self._since: tuple[str, float] | None = None
        self._told: tuple[str | None, str, int | None] | None = None
        self._faults: tuple[Finding, ...] = ()
        self.restart: OnWedge | None = None

    @property
    def limits(self) -> Limits:
        """What it judges by."""
        longest = 2 * self._interval + self._settings.canary_deadline_seconds
        return Limits(self._settings.stall_seconds, longest)

    @classmethod
    def one_look(cls, watched: Watched) -> Observation:
        """Look once, beside whatever watch there is: nothing is said to others or done."""
        made = cls(watched, Board(), lambda found: None)
        made._looks.append(look := watched.observer.look())
        return made._observation(look, judge([look], made.limits))

    def run(self, until_stopped: bool = False) -> None:
        """Look on, until the line is to be restarted, or until somebody stops it."""
        while self.restart is None:
            begun = self._clock()
            found = self.look()
            if until_stopped and found is not None and self._is_over(found):
                return
            time.sleep(max(0.0, self._interval - (self._clock() - begun)))

    def look(self) -> Observation | None:
        """Look once, unless a suite is timing the line; act on a wedge, and on ranks that ended."""
        with looking(self._watched.store.root) as may:
            if not may:
                return None
            look = self._watched.observer.look(doubtful(list(self._looks)))
        self._looks.append(look)
        found = self._observation(look, judge(list(self._looks), self.limits))
        self._publish(found)
        if found.state == "wedged" or self._outage():
            self._act(found)
        return found

    def _observation(self, look: Look, judged: Judgement) -> Observation:
        now = self._wall()
        if self._since is None or self._since[0] != judged.state:
            self._since = (judged.state, look.at)
        rate = self._rate()
        if rate is not None:
            self._rates.append((now, rate))
        site = self._watched.loaded.site
        shown = findings(list(self._looks)[-2:], site.startup, site.kind == "fleet")
        shown += self._acted(look.run) + self._faults
        canaries = (one.canary for one in reversed(self._looks) if one.canary is not None)
        return Observation(
            line=site.name,
            run=look.run,
            at=now,
            state=judged.state,
            reason=judged.reason,
            rank=judged.rank,
            since=now - max(0.0, self._clock() - self._since[1]),
            ranks=look.ranks,
            engine=look.engine,
            canary=next(canaries, None),
            findings=shown,
            versions=dict(self._watched.observer.versions),
            history=tuple(self._rates),
        )

    def _acted(self, run: str | None) -> tuple[Finding, ...]:
        try:
            acts = self._record.acts()
            return acted_findings(acts, run) + key_findings(acts, run)
        except RunError as error:
            return damaged(error.problems)

    def _rate(self) -> float | None:
        """Return the tokens a second since the last look, or what the engine says of itself."""
        if len(self._looks) > 1:
            now, before = self._looks[-1], self._looks[-2]
            tokens, earlier = now.engine.generated_tokens, before.engine.generated_tokens
            if tokens is not None and earlier is not None and now.run == before.run:
                return max(0, tokens - earlier) / max(now.at - before.at, 1e-3)
        return self._looks[-1].engine.tokens_per_second

    def _publish(self, found: Observation) -> None:
        """Show an observation everywhere; a disk that is full keeps nobody from looking on."""
        self._board.post(found)
        try:
            self._record.say(found, os.getpid())
            self._faults = ()
        except OSError as error:
            self._faults = (_unwritten(str(self._watched.store.root), error),)
        told = (found.run, found.state, found.rank)
        if told != self._told:
            self._told = told
            self._tell(found)

    def _outage(self) -> bool:
        """Tell whether ranks have ended of a line that should serve: nobody has stopped it."""
        run = self._watched.observer.run
        return run is not None and ended(list(self._looks)) and run.read()["phase"] == READY

    def _act(self, found: Observation) -> None:
        """Keep the evidence and do what the site says, once a run."""
        try:
            done = act(self._watched, self._record, found)
        except TetrasparkError as error:
            self._faults = damaged(error.problems)
            return
        except OSError as error:
            self._faults = (_unwritten("the evidence of the wedge", error),)
            return
        if done in RESTARTS:
            self.restart = done

    def _is_over(self, found: Observation) -> bool:
        """Tell whether the line was stopped, or forgotten: nothing is left to watch."""
        run = self._watched.observer.run
        if run is None or not run.folder.exists():
            return True
        return found.state == "down" and run.read()["phase"] in (STOPPED, "failed")


def _unwritten(where: str, error: Exception) -> Finding:
    seen = f"cannot be kept: {error}"
    return Finding("WATCH.RECORD", where, seen, "room for the watch's own files", "df -h")
