"""Asks the tasks, several at once, and scores the answers one after the other."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from tetraspark.errors import RunError
from tetraspark.line.api import Api
from tetraspark.measure.quality.extract import without_thought
from tetraspark.measure.quality.proof import Proven
from tetraspark.measure.quality.report import Outcome, Verdict
from tetraspark.measure.quality.scoring import fault_of
from tetraspark.measure.quality.task import Task
from tetraspark.measure.stream import Sampling, Trace, ask


@dataclass(frozen=True)
class QualityPlan:
    """How to ask: `repeat` times each; `max_tokens` stands in for the tasks' own limits."""

    concurrency: int
    repeat: int
    sampling: Sampling
    timeout: float
    max_tokens: int | None = None


def measure_quality(
    api: Api, tasks: Sequence[Task], plan: QualityPlan, sandbox: Proven | RunError | None
) -> Iterator[Outcome]:
    """Yield an outcome for every attempt, as they come.

    `sandbox` is what `prove` returned or raised: without a proven one, code is not even asked for.
    """
    proven = sandbox if isinstance(sandbox, Proven) else None
    why = sandbox.problems[0].seen if isinstance(sandbox, RunError) else "no sandbox"
    with ThreadPoolExecutor(plan.concurrency) as pool:
        asked: dict[Future[Trace], tuple[Task, int]] = {}
        for task in tasks:
            for attempt in range(1, plan.repeat + 1):
                if task.kind == "CODE" and proven is None:
                    yield Outcome(task.id, task.kind, attempt, "not run", f"sandbox: {why}")
                else:
                    asked[pool.submit(_ask, api, task, plan)] = task, attempt
        try:
            for future in as_completed(asked):
                yield _outcome(*asked[future], future.result(), proven)
        finally:
            pool.shutdown(cancel_futures=True)


def _ask(api: Api, task: Task, plan: QualityPlan) -> Trace:
    limit = plan.max_tokens or task.max_tokens
    return ask(api, task.prompt, limit, plan.sampling, plan.timeout)


def _outcome(task: Task, attempt: int, trace: Trace, sandbox: Proven | None) -> Outcome:
    verdict, why = _judged(task, trace, sandbox)
    return Outcome(
        id=task.id,
        kind=task.kind,
        attempt=attempt,
        verdict=verdict,
        why=why,
        answer=trace.text,
        completion_tokens=trace.completion_tokens,
        sent=trace.sent,
        ended=trace.ended,
    )


def _judged(task: Task, trace: Trace, sandbox: Proven | None) -> tuple[Verdict, str]:
    if trace.error is not None:
        return "error", trace.error
    if trace.finish == "length":
        # What was to follow is not known: half of a wrong answer may look right.
        return "wrong", f"cut off after {trace.completion_tokens or 'its limit of'} tokens"
    try:
        fault = fault_of(task, without_thought(trace.answer), sandbox)
    except RunError as error:
        return "error", str(error.problems[0])
    return ("right", "") if fault is None else ("wrong", fault)
