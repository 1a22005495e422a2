"""`tetraspark tune`: measure from which sizes an all-reduce goes which way, and keep it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, OpenLine, SitePath, open_local_line
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.cli.report_file import check_writable
from tetraspark.cli.tune_view import print_tuning
from tetraspark.collectives.thresholds import ThresholdKey
from tetraspark.errors import RunError
from tetraspark.fleet.run_files import replace
from tetraspark.line.threshold_store import ThresholdStore
from tetraspark.line.tuned import absence, key_of
from tetraspark.measure.collectives import Bench, Device, parse_size
from tetraspark.measure.serving import require_idle
from tetraspark.measure.tune_measured import Measured, measured_of
from tetraspark.measure.tune_report import TuneReport
from tetraspark.measure.tune_run import tune as measure
from tetraspark.measure.tune_svg import tune_svg

MOST_CALLS = 50


def tune(
    site: SitePath = DEFAULT_SITE,
    repeats: Annotated[int, typer.Option("--repeats", min=1, max=1000, help="Of every size.")] = 3,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=100_000, help="Of a size in a repeat.")
    ] = 5,
    smallest: Annotated[str, typer.Option("--min", help="Smallest size, as 4096 or 16K.")] = "4K",
    largest: Annotated[str, typer.Option("--max", help="Largest size; sizes double.")] = "16M",
    device: Annotated[Device, typer.Option("--device", help="Where the tensors are.")] = "cpu",
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw the curves to a file.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print what is stored, no more.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Time one-shot, two-shot and the rival, and keep the sizes from which each is faster."""
    line = open_local_line(site)
    store, key = ThresholdStore(), key_of(line.loaded, device)
    if show:
        _show(line, store, key, svg, json)
        return
    bench = Bench(
        world=key.world,
        op="all_reduce",
        dtype="bf16",
        smallest=parse_size(smallest, "--min"),
        largest=parse_size(largest, "--max"),
        lanes=key.lanes,
        delivery="pull",
        in_place=True,
        device=device,
        rounds=rounds,
        calls=MOST_CALLS,
    )
    if dry_run:
        _would(bench, repeats, store.path(key), json)
        return
    check_writable(svg, "--svg")
    store.require()
    require_idle(line.loaded.site.name, line.runner, line.store)
    report = _measured(bench, repeats, key)
    problems = report.problems()
    path = None if problems else store.write(report.thresholds, report.measured.as_dict())
    if json:
        print_json(report.as_dict() | {"stored": None if path is None else str(path)})
    else:
        print_tuning(report.thresholds, report.measured)
        if path is not None:
            out.print(f"stored: {path}", markup=False)
    _draw(svg, report.measured, key)
    if problems:
        print_problems(problems)
        raise typer.Exit(1)


def _measured(bench: Bench, repeats: int, key: ThresholdKey) -> TuneReport:
    begin = f"starting {bench.world} ranks"
    with err.status(begin) as spinner:
        if not err.is_terminal:
            err.print(begin)

        def heard(words: str) -> None:
            if err.is_terminal:
                spinner.update(escape(words))
            elif words.endswith(f" {bench.smallest} bytes"):
                err.print(words.partition(",")[0], markup=False)

        return measure(bench, repeats, key, heard)


def _would(bench: Bench, repeats: int, path: Path, json: bool) -> None:
    sizes = bench.sizes()
    if json:
        print_json({"world": bench.world, "sizes": sizes, "repeats": repeats, "would_write": path})
        return
    out.print(f"would time {bench.world} ranks at {len(sizes)} sizes, {repeats} times over:")
    out.print(f"  {', '.join(map(str, sizes))} bytes")
    out.print(f"would write {path}", markup=False)


def _show(
    line: OpenLine, store: ThresholdStore, key: ThresholdKey, svg: Path | None, json: bool
) -> None:
    stored = store.read(key)
    if stored is None:
        raise RunError(absence(line.loaded, key, f"line {line.loaded.site.name}", store))
    check_writable(svg, "--svg")
    measured = measured_of(stored)
    if json:
        print_json(
            {
                "stored": str(stored.path),
                "thresholds": stored.thresholds.as_dict(),
                "measured": measured.as_dict(),
            }
        )
    else:
        print_tuning(stored.thresholds, measured)
        out.print(f"stored: {stored.path}", markup=False)
    _draw(svg, measured, key)


def _draw(file: Path | None, measured: Measured, key: ThresholdKey) -> None:
    if file is not None:
        replace(file, tune_svg(measured.curve, key.name, measured.rival))
