"""`tetraspark soak`: waves of requests for minutes or hours, and what went wrong in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from tetraspark.cli.bench_prefill import TextFile
from tetraspark.cli.endpoint import (
    Hardware,
    KeyFile,
    MeasuredSite,
    Model,
    OutFile,
    Seed,
    Url,
    open_measured,
    seed_of,
)
from tetraspark.cli.lengths import MOST, length_of
from tetraspark.cli.line import Json, OpenLine
from tetraspark.cli.number import Timeout, number
from tetraspark.cli.output import err, out, print_problems, shown
from tetraspark.cli.report_file import about_line, conclude
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.run_files import read_progress
from tetraspark.measure.corpus import corpus_of
from tetraspark.measure.counters import MEMORY, errors_of, mem_available_gib, of_ranks
from tetraspark.measure.sized import measure_density
from tetraspark.measure.soak import FAILED_WAVES, Counters, SoakPlan, SoakReport, Wave
from tetraspark.measure.soak import soak as soak_waves

LONGEST_HOURS = 720


def soak(
    context: typer.Context,
    site: MeasuredSite = None,
    url: Url = None,
    model: Model = None,
    key_file: KeyFile = None,
    hardware: Hardware = None,
    minutes: Annotated[
        float | None,
        number("--minutes", "When no new wave begins; 60 if absent.", 0, 60 * LONGEST_HOURS),
    ] = None,
    hours: Annotated[
        float | None, number("--hours", "The same in hours.", 0, LONGEST_HOURS)
    ] = None,
    streams: Annotated[
        int, typer.Option("--streams", min=1, max=256, help="Requests a wave.")
    ] = 16,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, max=MOST, help="A request.")
    ] = 512,
    prefill: Annotated[
        str, typer.Option("--prefill", help="Tokens of the cold prefill beside each wave.")
    ] = "256k",
    equal_repeats: Annotated[
        bool, typer.Option("--equal-repeats", help="Fail when greedy repeats differ.")
    ] = False,
    late_peers: Annotated[
        bool,
        typer.Option("--late-peers", help="Fail when a peer was late; always so with a fleet."),
    ] = False,
    text: TextFile = None,
    seed: Seed = None,
    timeout: Timeout = 1800.0,
    out_file: OutFile = None,
    json: Json = False,
) -> None:
    """Keep the server busy; exit code 1 when a request failed or an error counter moved."""
    tokens = length_of(prefill, "--prefill")
    start = seed_of(seed)
    length = _minutes(minutes, hours)
    plan = SoakPlan(length, streams, max_tokens, tokens, start, timeout)
    corpus = corpus_of(text)
    measured = open_measured(context, site, url, model, key_file, hardware)
    endpoint = measured.endpoint
    density = measure_density(endpoint.api, lambda size: corpus.text(size, -start - size), timeout)
    waves: list[Wave] = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("soak", total=length * 60)
        counters = _counters(measured.line)
        before = counters()
        for wave in soak_waves(endpoint.api, plan, corpus, density, counters):
            waves.append(wave)
            progress.update(
                task, completed=wave.began + wave.seconds, description=f"wave {wave.number}"
            )
    line = measured.line
    late = late_peers or (line is not None and line.loaded.site.kind == "fleet")
    names = errors_of(
        dict.fromkeys([*before, *(name for one in waves for name in one.counters)]), late
    )
    found = SoakReport(tuple(waves), before, names, equal_repeats)
    about = endpoint.about("soak")
    report = {
        "about": about.as_dict(),
        "plan": plan,
        "corpus": corpus.name,
        **found.as_dict(),
        "ok": not found.faults,
    }
    if found.given_up and line is not None:
        seen = f"every request of the last {FAILED_WAVES} waves failed"
        fix = f"tetraspark status --site {line.loaded.path}"
        print_problems([Problem(endpoint.api.url, seen, "a line that answers", fix)])

    def show() -> None:
        out.print(about_line(about), markup=False)
        _print(found)

    conclude(report, out_file, json, endpoint.api.key, show)


def _minutes(minutes: float | None, hours: float | None) -> float:
    """Return the length of the soak. Raises UsageError where it is given twice."""
    if minutes is not None and hours is not None:
        seen = f"{minutes:g}, beside --hours {hours:g}"
        raise UsageError(Problem("--minutes", seen, "one of the two", "leave one out"))
    if hours is not None:
        return 60 * hours
    return 60.0 if minutes is None else minutes


def _counters(line: OpenLine | None) -> Callable[[], Counters]:
    """Return what reads the counters of a line; of a server at a URL nothing is known."""
    if line is None:
        return dict
    run, plan = line.run()
    nodes = [rank["node"] for rank in plan["ranks"]]

    def read() -> Counters:
        line.runner.inspect(run.folder, nodes)
        found = of_ranks(read_progress(run.folder, rank) for rank in range(len(nodes)))
        memory = mem_available_gib(Path("/proc/meminfo").read_text(encoding="utf-8"))
        return found if memory is None else {**found, MEMORY: memory}

    return read


def _print(found: SoakReport) -> None:
    told = found.as_dict()
    rate = "no tokens"
    if told["tokens_per_second"] is not None:
        rate = (
            f"{told['tokens_per_second']:.1f} tok/s (median of waves; "
            f"{told['slowest']:.1f} to {told['fastest']:.1f})"
        )
    out.print(f"{len(found.waves)} waves, {told['requests']} requests, {rate}")
    out.print(f"greedy repeats that differed: {found.differing}")
    grown = {name: value for name, value in found.growth.items() if value}
    for name, value in grown.items():
        out.print(f"{name}: {value:+g} from before the first wave to the last", markup=False)
    for fault in found.faults:
        out.print(f"fault: {shown(fault)}", markup=False)
