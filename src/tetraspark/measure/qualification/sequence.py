"""Runs the steps one after the other; each keeps its report, and each has an outcome."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tetraspark.measure.qualification.step import Step

Verdict = Literal["passed", "failed", "interrupted", "not run", "not for this line"]
GRACE_SECONDS = 120.0
"""How long an interrupted step may clean up: longer than a start takes to end its ranks."""
PROGRAM = (sys.executable, "-m", "tetraspark")


@dataclass(frozen=True)
class Outcome:
    """What came of a step. `report` is a file beside the receipt, `sha256` that of its bytes.

    `command` is without the site and `--json`, which all steps have. `why` is never empty for a
    step that did not pass.
    """

    name: str
    command: str
    verdict: Verdict
    why: str = ""
    exit_code: int | None = None
    seconds: float | None = None
    report: str | None = None
    sha256: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for the receipt."""
        return asdict(self)


@dataclass(frozen=True)
class Ran:
    """How a step's command ended, and what it printed."""

    exit_code: int
    seconds: float
    data: bytes
    interrupted: bool = False


Execute = Callable[[Step], Ran]
Announce = Callable[[Step], None]


def run_steps(
    steps: Sequence[Step],
    site_sha256: str,
    folder: Path,
    execute: Execute,
    announce: Announce,
) -> Iterator[Outcome]:
    """Yield the outcome of every step, in order; a report is kept before its outcome is told.

    After an interruption nothing but closing steps is run.
    """
    passed: set[str] = set()
    interrupted = False
    for number, step in enumerate(steps, 1):
        blocked = step.why_not or _missing(step, passed, interrupted)
        if blocked:
            verdict: Verdict = "not for this line" if step.why_not else "not run"
            yield Outcome(step.name, " ".join(step.words), verdict, blocked)
            continue
        announce(step)
        ran = execute(step)
        interrupted = interrupted or ran.interrupted
        outcome = _keep(step, ran, site_sha256, folder / f"{number:02}-{step.name}.json")
        if outcome.verdict == "passed":
            passed.add(step.name)
        yield outcome


def not_reached(steps: Sequence[Step], outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return the outcomes of steps that `run_steps` never came to."""
    why = "the qualification ended before"
    left = steps[len(outcomes) :]
    return tuple(Outcome(one.name, " ".join(one.words), "not run", why) for one in left)


def execute_with(site: Path, program: Sequence[str] = PROGRAM) -> Execute:
    """Return what runs a step as a command of its own; its progress goes to our stderr."""

    def execute(step: Step) -> Ran:
        argv = [*program, *step.words, "--site", str(site), "--json"]
        began = time.monotonic()
        # A group of its own: an interrupt of the terminal reaches it once, through us, and its
        # own clean-up is not cut short by a second one.
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=0
        ) as child:
            data, interrupted = _output(child)
        seconds = time.monotonic() - began
        return Ran(child.returncode, seconds, data, interrupted)

    return execute


def _output(child: "subprocess.Popen[bytes]") -> tuple[bytes, bool]:
    try:
        return child.communicate()[0], False
    except (KeyboardInterrupt, SystemExit):
        # The second is how a SIGTERM comes here: either way the line must not be left behind.
        # SIGTERM goes on, since a SIGINT is ignored below a shell's `&`.
        child.terminate()
    try:
        return child.communicate(timeout=GRACE_SECONDS)[0], True
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()[0], True


def _missing(step: Step, passed: set[str], interrupted: bool) -> str:
    lacking = [name for name in step.needs if name not in passed]
    if lacking:
        return f"it needs {', '.join(lacking)}, which did not pass"
    return "interrupted before" if interrupted and not step.closing else ""


def _keep(step: Step, ran: Ran, site_sha256: str, file: Path) -> Outcome:
    """Write a report as it was printed, and judge it."""
    file.write_bytes(ran.data)
    why = _fault(ran, site_sha256)
    verdict: Verdict = "interrupted" if ran.interrupted else "failed" if why else "passed"
    return Outcome(
        name=step.name,
        command=" ".join(step.words),
        verdict=verdict,
        why="interrupted" if ran.interrupted else why,
        exit_code=ran.exit_code,
        seconds=round(ran.seconds, 1),
        report=file.name,
        sha256=hashlib.sha256(ran.data).hexdigest(),
    )


def _fault(ran: Ran, site_sha256: str) -> str:
    """Return why a step did not pass; empty when it did."""
    try:
        report = json.loads(ran.data)
    except (ValueError, RecursionError):
        return f"exit code {ran.exit_code}, and no JSON report"
    if not isinstance(report, dict):
        return f"exit code {ran.exit_code}, and a report that is no object"
    if ran.exit_code:
        return f"exit code {ran.exit_code}{_first_problem(report)}"
    about = report.get("about")
    told = about.get("site_sha256", site_sha256) if isinstance(about, dict) else site_sha256
    return "" if told == site_sha256 else f"its report is of another site file: {told or 'none'}"


def _first_problem(report: dict[str, Any]) -> str:
    """Return what a report says of its failure, where it says it in a way all reports share."""
    problems, faults = report.get("problems"), report.get("faults")
    if isinstance(problems, list) and problems and isinstance(problems[0], dict):
        return f": {problems[0].get('where')}: {problems[0].get('seen')}"
    return f": {faults[0]}" if isinstance(faults, list) and faults else ": see its report"
