"""`tetraspark bench`: benchmarks whose output describes itself."""

from typing import Annotated

import typer
from rich.table import Table

from tetraspark.cli.bench_collectives import collectives
from tetraspark.cli.bench_decode import decode
from tetraspark.cli.bench_prefill import prefill
from tetraspark.cli.bench_transport import transport
from tetraspark.cli.line import DEFAULT_SITE, Json, OpenLine, SitePath, open_local_line, warned
from tetraspark.cli.output import err, out, print_json
from tetraspark.line.make_plan import make_plan
from tetraspark.line.plan import Plan
from tetraspark.measure.serving import require_idle, served
from tetraspark.measure.start import StartReport, measure_start, report

bench = typer.Typer(help="Measure the line.", no_args_is_help=True)


@bench.callback()
def main() -> None:
    """Measure the line."""


bench.command()(collectives)
bench.command()(decode)
bench.command()(prefill)
bench.command()(transport)


@bench.command()
def start(
    site: SitePath = DEFAULT_SITE,
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=1000, help="Cold starts to measure.")
    ] = 3,
    json: Json = False,
) -> None:
    """Measure the cold start up to the first token, beside the engine's own import time."""
    line = open_local_line(site)
    plan = warned(make_plan(line.loaded, line.launch()))
    require_idle(plan.line, line.runner, line.store)
    samples = []
    with err.status("measuring") as spinner:
        for sample in measure_start(plan, runs, lambda: _serve_once(line, plan)):
            samples.append(sample)
            spinner.update(f"measured {len(samples)} of {runs} starts")
    found = report(plan, samples)
    print_json(found.as_dict()) if json else _print(found)


def _serve_once(line: OpenLine, plan: Plan) -> float:
    """Serve, stop, and return the seconds to the first token (which ends the warm-up)."""
    with served(line.loaded, plan, line.key(), line.runner, line.store) as ready:
        return sum(seconds for phase, seconds in ready.seconds.items() if phase != "canary")


def _print(found: StartReport) -> None:
    out.print(
        f"# line {found.line}: {found.ranks} ranks of sglang {found.engine} on {found.cores} cores "
        f"of this machine's CPU (a stand-in for {found.ranks} nodes), cold starts",
        markup=False,
    )
    table = Table("run", "imports alone, s", "first token, s", "over imports, s", box=None)
    for number, sample in enumerate(found.samples, 1):
        table.add_row(str(number), *_cells(sample.floor, sample.first_token, sample.over_floor))
    medians = (
        found.median(lambda sample: sample.floor),
        found.median(lambda sample: sample.first_token),
        found.median(lambda sample: sample.over_floor),
    )
    table.add_row("median", *_cells(*medians))
    out.print(table)


def _cells(*values: float) -> list[str]:
    return [f"{value:.1f}" for value in values]
