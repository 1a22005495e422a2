"""From started to ready: phases with deadlines, and the proof asked for at the end."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.rank import RankState
from tetraspark.fleet.runner import Runner
from tetraspark.line import receipt
from tetraspark.line.api import Answer, Api
from tetraspark.line.engine_log import Stage
from tetraspark.line.failure import first_failure
from tetraspark.line.log_tail import LogTail
from tetraspark.line.plan import Plan
from tetraspark.line.progress import Look, Phase, Progress, Watcher
from tetraspark.line.run import Run
from tetraspark.site.schema import Canary, Deadlines

LAST_WORDS_SECONDS = 1.0


class Start:
    """Watches the ranks of a run until they have proven that they serve."""

    def __init__(
        self,
        plan: Plan,
        run: Run,
        runner: Runner,
        deadlines: Deadlines,
        canary: Canary,
        api: Api,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self._plan = plan
        self._run = run
        self._runner = runner
        self._deadlines = deadlines
        self._canary = canary
        self._api = api
        self._watchers = watchers
        self._nodes = [command.node for command in plan.ranks]
        self._silent: set[int] = set()
        self._tail = LogTail(run.folder, len(plan.ranks))
        self._stages = [Stage.STARTED] * len(plan.ranks)
        self.answer: Answer | None = None
        self.seconds: dict[Phase, float] = {}

    def watch(self) -> Iterator[Progress]:
        """Yield progress until ready. Raises RunError: a rank ended, lied, or took too long."""
        yield from self._wait_stage("import", Stage.LOADING, self._deadlines.import_seconds)
        yield from self._wait_stage("load", Stage.LISTENING, self._deadlines.load_seconds)
        pool = ThreadPoolExecutor(max_workers=1)
        try:
            yield from self._warm_up(pool)
            yield from self._ask_canary(pool)
            self._remember("canary")
        finally:
            # A request to a wedged server must not delay taking that server down.
            pool.shutdown(wait=False, cancel_futures=True)

    def _wait_stage(self, phase: Phase, wanted: Stage, limit: int) -> Iterator[Progress]:
        for progress in self._until(phase, limit):
            if min(self._stages) >= wanted:
                return
            yield progress

    def _warm_up(self, pool: ThreadPoolExecutor) -> Iterator[Progress]:
        """Let the engine generate once; every rank must then have printed its receipts."""
        limit = self._deadlines.warmup_seconds
        asked = pool.submit(self._api.http_status, "/health_generate", limit)
        for progress in self._until("warmup", limit):
            if asked.done() and asked.result() == 200 and not self._missing():
                return
            if asked.done() and asked.result() != 200:
                asked = pool.submit(self._api.http_status, "/health_generate", limit)
            yield progress

    def _ask_canary(self, pool: ThreadPoolExecutor) -> Iterator[Progress]:
        limit = self._deadlines.canary_seconds
        canary = self._canary
        asked = pool.submit(self._api.chat, canary.prompt, canary.max_tokens, limit)
        for progress in self._until("canary", limit):
            if asked.done():
                self.answer = self._checked(asked)
                return
            yield progress

    def _checked(self, asked: "Future[Answer]") -> Answer:
        answer = asked.result()
        expected = self._canary.expect
        if not answer.text or not self._canary.accepts(answer.text):
            raise RunError(
                Problem(
                    where=f"{self._plan.url} canary {self._canary.prompt!r}",
                    seen=f"the answer {answer.text!r}",
                    wanted=f"an answer with {expected!r}" if expected else "a text",
                    fix="tetraspark logs 0",
                )
            )
        return answer

    def _until(self, phase: Phase, limit: int) -> Iterator[Progress]:
        """Yield the progress of a phase a few times a second; raise when something is wrong."""
        started = time.monotonic()
        self._remember(phase)
        while True:
            self._look(phase)
            self.seconds[phase] = time.monotonic() - started
            progress = self._progress(phase, self.seconds[phase], limit)
            if progress.seconds > limit:
                raise self._too_late(progress)
            yield progress
            time.sleep(self._runner.poll_seconds)

    def _remember(self, phase: Phase) -> None:
        """Record the phase, and the files that a crash in it would leave behind."""
        files = sorted(str(file) for file in self._runner.shared_memory(self._run.folder))
        if not self._run.advance(phase, since=time.time(), shared_memory=files):
            raise stopped_meanwhile(self._run)

    def _look(self, phase: Phase) -> None:
        """Read the state and the new lines of every rank."""
        states = self._runner.inspect(self._run.folder, self._nodes)
        fresh = self._tail.read()
        for line in fresh:
            if line.stage is not None:
                self._stages[line.rank] = max(self._stages[line.rank], line.stage)
        problems = receipt.wrong(fresh, self._plan)
        if problems:
            raise RunError(*problems)
        gone = [one.rank for one in states if one.state in ("exited", "absent", "restarted")]
        if gone:
            raise self._ended(gone[0])
        self._require_reached(states, phase)
        for watcher in self._watchers:
            watcher(Look(phase, states, fresh))

    def _require_reached(self, states: Sequence[RankState], phase: Phase) -> None:
        """Raise when a node was out of reach twice: once may be a session that broke."""
        silent = {one.rank: one.problem for one in states if one.problem is not None}
        lost = [
            replace(problem, where=f"rank {rank}, {problem.where}", seen=f"{phase}: {problem.seen}")
            for rank, problem in silent.items()
            if rank in self._silent
        ]
        self._silent = set(silent)
        if lost:
            raise RunError(*lost)

    def _ended(self, gone: int) -> RunError:
        if self._run.is_stopped():
            return stopped_meanwhile(self._run)
        time.sleep(LAST_WORDS_SECONDS)  # The cause may be another rank's: let it speak.
        states = self._runner.inspect(self._run.folder, self._nodes)
        self._tail.read()
        failure = first_failure(self._tail.lines, states, {})
        rank = failure.rank if failure else gone
        return RunError(
            Problem(
                where=self._where(rank),
                seen=failure.text if failure else "ended without a word",
                wanted="a rank that stays up",
                fix=f"tetraspark logs {rank}",
            )
        )

    def _too_late(self, progress: Progress) -> RunError:
        absent = ", ".join(f"rank {rank}: {kind}" for rank, kind in self._missing())
        listening = min(self._stages) == Stage.LISTENING
        detail = f"; receipts missing: {absent}" if listening and absent else ""
        return RunError(
            Problem(
                where=self._where(progress.rank),
                seen=f"phase {progress.phase} not over after {progress.seconds:.0f} s, "
                f"last line: {progress.last_line}{detail}",
                wanted=f"at most {progress.limit} s",
                fix=f"tetraspark logs {progress.rank}; "
                f"or raise deadlines.{progress.phase}_seconds in {self._plan.site}",
            )
        )

    def _progress(self, phase: Phase, seconds: float, limit: int) -> Progress:
        rank = self._slowest()
        line = self._tail.last(rank)
        return Progress(phase, seconds, limit, rank, line.text if line else "(nothing yet)")

    def _slowest(self) -> int:
        """Return the rank that is furthest behind, or has been silent for longest."""
        unproven = {rank for rank, _ in self._missing()}

        def key(rank: int) -> tuple[int, bool, float]:
            line = self._tail.last(rank)
            return self._stages[rank], rank not in unproven, line.time if line else 0.0

        return min(range(len(self._stages)), key=key)

    def _missing(self) -> list[tuple[int, str]]:
        return receipt.missing(self._tail.lines, self._plan)

    def _where(self, rank: int) -> str:
        return f"rank {rank} ({self._plan.ranks[rank].node})"


def stopped_meanwhile(run: Run) -> RunError:
    """Return what a start says that another command has stopped."""
    seen, wanted = "another command stopped this start", "a start that is left alone"
    return RunError(Problem(f"run {run.id}", seen, wanted, "tetraspark status"))
