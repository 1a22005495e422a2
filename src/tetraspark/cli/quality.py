"""`tetraspark quality`: 75 tasks, scored without a judge."""

from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from tetraspark.cli.endpoint import (
    Hardware,
    KeyFile,
    MeasuredSite,
    Model,
    OutFile,
    Url,
    open_endpoint,
)
from tetraspark.cli.lengths import MOST
from tetraspark.cli.line import Json
from tetraspark.cli.number import Timeout
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.cli.report_file import about_line, conclude
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.line.api import Api
from tetraspark.measure.quality.catalogue import chosen
from tetraspark.measure.quality.proof import Proven, prove
from tetraspark.measure.quality.report import Outcome, QualityReport
from tetraspark.measure.quality.suite import QualityPlan, measure_quality
from tetraspark.measure.quality.task import Task
from tetraspark.measure.stream import GREEDY, SAMPLED

SAMPLINGS = {"greedy": GREEDY, "sampled": SAMPLED}


def quality(
    context: typer.Context,
    site: MeasuredSite = None,
    url: Url = None,
    model: Model = None,
    key_file: KeyFile = None,
    hardware: Hardware = None,
    only: Annotated[str, typer.Option("--only", help="IDs and kinds, a list: CODE,JSON.001.")] = "",
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, max=256, help="Requests at once.")
    ] = 8,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, max=1000, help="Attempts at each task.")
    ] = 1,
    require: Annotated[
        int | None,
        typer.Option("--require", min=1, max=10_000, help="Fail with fewer right tasks."),
    ] = None,
    sampling: Annotated[str, typer.Option("--sampling", help="greedy or sampled.")] = "greedy",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", min=1, max=MOST, help="For every task: models that think need more."
        ),
    ] = None,
    timeout: Timeout = 600.0,
    listing: Annotated[bool, typer.Option("--list", help="Print the tasks, ask nothing.")] = False,
    out_file: OutFile = None,
    json: Json = False,
) -> None:
    """Ask and score the tasks; exit code 1 when one could not be scored, or too few are right."""
    tasks = chosen([name for name in only.split(",") if name.strip()])
    if listing:
        _list(tasks, json)
        return
    if sampling not in SAMPLINGS:
        wanted = "greedy or sampled"
        raise UsageError(Problem("--sampling", sampling, wanted, "--sampling sampled"))
    if require is not None and require > len(tasks):
        seen, wanted = f"{require}", f"at most {len(tasks)}, the tasks that are asked"
        raise UsageError(Problem("--require", seen, wanted, f"--require {len(tasks)}"))
    plan = QualityPlan(concurrency, repeat, SAMPLINGS[sampling], timeout, max_tokens)
    endpoint = open_endpoint(context, site, url, model, key_file, hardware)
    sandbox = _sandbox(tasks)
    found = QualityReport(_asked(endpoint.api, tasks, plan, sandbox), require)
    about = endpoint.about("quality")
    report = {
        "about": about.as_dict(),
        "plan": plan,
        "sandbox": _said(sandbox),
        **found.as_dict(),
        "ok": not found.faults,
    }

    def show() -> None:
        out.print(about_line(about), markup=False)
        _print(found)

    conclude(report, out_file, json, endpoint.api.key, show)


def _sandbox(tasks: tuple[Task, ...]) -> Proven | RunError | None:
    """Return the sandbox, what is wrong with it, or None where no task needs one."""
    if not any(task.kind == "CODE" for task in tasks):
        return None
    try:
        return prove()
    except RunError as error:
        print_problems(error.problems)
        return error


def _said(sandbox: Proven | RunError | None) -> str:
    if isinstance(sandbox, RunError):
        return f"refused: {sandbox.problems[0]}"
    return "not needed" if sandbox is None else "proven"


def _asked(
    api: Api, tasks: tuple[Task, ...], plan: QualityPlan, sandbox: Proven | RunError | None
) -> tuple[Outcome, ...]:
    found: list[Outcome] = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("quality", total=len(tasks) * plan.repeat)
        for outcome in measure_quality(api, tasks, plan, sandbox):
            found.append(outcome)
            progress.update(task, advance=1, description=outcome.id)
    places = {task.id: place for place, task in enumerate(tasks)}
    return tuple(sorted(found, key=lambda one: (places[one.id], one.attempt)))


def _print(found: QualityReport) -> None:
    for one in found.outcomes:
        if one.verdict != "right":
            attempt = f" (attempt {one.attempt})" if one.attempt > 1 else ""
            out.print(f"{one.id}{attempt} {one.verdict}: {shown(one.why)}", markup=False)
    table = Table("kind", "right", "wrong", "error", "not run", box=None)
    for kind, counts in found.totals().items():
        table.add_row(kind, *(str(count) for count in counts.values()))
    out.print(table)
    # Only what has a score counts: 20 of 20 with a refused rest is not 20 of 75.
    out.print(f"{found.right} of {found.scored} scored tasks right")
    if found.tokens_per_second is not None:
        rate = f"{found.tokens_per_second:.1f} tok/s, prompts and waiting included"
        out.print(rate)
    for fault in found.faults:
        out.print(f"fault: {fault}", markup=False)


def _list(tasks: tuple[Task, ...], json: bool) -> None:
    if json:
        print_json(
            [{"id": one.id, "prompt": one.prompt, "max_tokens": one.max_tokens} for one in tasks]
        )
        return
    for one in tasks:
        out.print(f"{one.id}  {one.prompt}", markup=False)
    out.print(f"{len(tasks)} tasks")
