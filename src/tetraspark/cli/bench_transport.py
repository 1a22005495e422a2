"""`tetraspark bench transport`: decode speed with tetraspark's transport on and off, in one run."""

import os
from typing import Annotated

import typer
from rich.table import Table

from tetraspark.cli.line import DEFAULT_SITE, Json, OpenLine, SitePath, open_local_line
from tetraspark.cli.output import err, out, print_json
from tetraspark.line.api import Api
from tetraspark.line.make_plan import make_plan
from tetraspark.measure.serving import served
from tetraspark.measure.transport import (
    Sample,
    Transport,
    TransportReport,
    decode_speed,
    idle_cores,
    with_transport,
)

REQUEST_SECONDS = 120.0
TRANSPORTS: tuple[Transport, ...] = ("shm", "off")


def transport(
    site: SitePath = DEFAULT_SITE,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Starts of each kind.")] = 2,
    requests: Annotated[int, typer.Option("--requests", min=1, help="Timed, a start.")] = 5,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=2, help="A request.")] = 64,
    json: Json = False,
) -> None:
    """Measure tokens a second with the transport on and off, alternating, and the idle line."""
    line = open_local_line(site)
    samples: list[Sample] = []
    with err.status("measuring") as spinner:
        for name in TRANSPORTS * rounds:
            spinner.update(f"start {len(samples) + 1} of {2 * rounds}: transport {name}")
            samples.append(_measure(line, name, requests, max_tokens))
    found = TransportReport(
        line=line.loaded.site.name,
        ranks=len(line.loaded.site.nodes),
        cores=len(os.sched_getaffinity(0)),
        max_tokens=max_tokens,
        samples=tuple(samples),
    )
    print_json(found.as_dict()) if json else _print(found)


def _measure(line: OpenLine, name: Transport, requests: int, max_tokens: int) -> Sample:
    loaded = with_transport(line.loaded, name)
    plan, key = make_plan(loaded), line.key()
    with served(loaded, plan, key, line.runner, line.store):
        api = Api(plan.url, plan.served_name, key)
        speeds = decode_speed(api, requests, max_tokens, REQUEST_SECONDS)
        return Sample(name, speeds, idle_cores(_pids(line)))


def _pids(line: OpenLine) -> tuple[int, ...]:
    return tuple(int(part.name) for part in line.runner.present(line.store.root).parts)


def _print(found: TransportReport) -> None:
    out.print(
        f"# line {found.line}: {found.ranks} ranks on {found.cores} cores of this machine's CPU "
        f"(a stand-in for {found.ranks} nodes), one greedy request of {found.max_tokens} tokens "
        "at a time, medians",
        markup=False,
    )
    table = Table("transport", "tokens/s", "lowest", "highest", "cores when idle", box=None)
    for name in TRANSPORTS:
        values = [
            value
            for sample in found.samples
            if sample.transport == name
            for value in sample.tokens_per_second
        ]
        table.add_row(
            name,
            f"{found.speed(name):.1f}",
            f"{min(values):.1f}",
            f"{max(values):.1f}",
            f"{found.idle(name):.2f}",
        )
    out.print(table)
    out.print(f"ratio shm / off: {found.ratio:.2f}")
