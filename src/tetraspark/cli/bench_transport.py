"""`tetraspark bench transport`: a line's speed with the transport on and off, in one run."""

import os
from typing import Annotated

import typer
from rich.table import Table

from tetraspark.cli.lengths import MOST
from tetraspark.cli.line import (
    DEFAULT_SITE,
    Json,
    OpenLine,
    SitePath,
    open_local_line,
    warned,
)
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
    prefill_speed,
    reading,
    transports_of,
    with_transport,
)

REQUEST_SECONDS = 120.0


def transport(
    site: SitePath = DEFAULT_SITE,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=1000, help="Starts of each kind.")
    ] = 2,
    requests: Annotated[
        int, typer.Option("--requests", min=1, max=10_000, help="Timed, a start.")
    ] = 5,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=2, max=MOST, help="A request.")
    ] = 64,
    characters: Annotated[
        int, typer.Option("--prompt-characters", min=100, max=8 * MOST, help="Of a timed prefill.")
    ] = 3000,
    json: Json = False,
) -> None:
    """Measure decode and prefill with the transport on and off, alternating, and the idle line."""
    line = open_local_line(site)
    samples: list[Sample] = []
    names = transports_of(line.loaded) * rounds
    with err.status("measuring") as spinner:
        for number, name in enumerate(names, 1):
            spinner.update(f"start {number} of {len(names)}: transport {name}")
            samples.append(_measure(line, name, requests, max_tokens, characters))
    found = TransportReport(
        line=line.loaded.site.name,
        ranks=len(line.loaded.site.nodes),
        cores=len(os.sched_getaffinity(0)),
        max_tokens=max_tokens,
        samples=tuple(samples),
    )
    print_json(found.as_dict()) if json else _print(found)


def _measure(
    line: OpenLine, name: Transport, requests: int, max_tokens: int, characters: int
) -> Sample:
    loaded = with_transport(line.loaded, name)
    plan, key = warned(make_plan(loaded)), line.key()
    with served(loaded, plan, key, line.runner, line.store):
        api = Api(plan.url, plan.served_name, key)
        decode = decode_speed(api, requests, max_tokens, REQUEST_SECONDS)
        prefill = prefill_speed(api, requests, characters, REQUEST_SECONDS)
        answer = api.chat(reading(-1, characters), max_tokens, REQUEST_SECONDS).text
        return Sample(name, decode, prefill, idle_cores(_pids(line)), answer)


def _pids(line: OpenLine) -> tuple[int, ...]:
    return tuple(int(part.name) for part in line.runner.present(line.store.root).parts)


def _print(found: TransportReport) -> None:
    out.print(
        f"# line {found.line}: {found.ranks} ranks on {found.cores} cores of this machine's CPU "
        f"(a stand-in for {found.ranks} nodes), one greedy request of {found.max_tokens} tokens "
        "at a time, medians",
        markup=False,
    )
    titles = ("transport", "tokens/s", "lowest", "highest", "prefill tokens/s", "cores when idle")
    table = Table(*titles, box=None)
    for name in found.transports:
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
            f"{found.prefill(name):.0f}",
            f"{found.idle(name):.2f}",
        )
    out.print(table)
    out.print(f"ratio shm / off: {found.ratio:.2f}")
    for name, ratio in found.prefill_ratios.items():
        out.print(f"prefill ratio shm / {name}: {ratio:.2f}")
    out.print(f"one greedy answer to a long prompt: {'the same' if found.same_answer else 'other'}")
