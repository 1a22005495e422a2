"""`tetraspark bench decode`: tokens a second by kind of text and concurrency."""

import re
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from tetraspark.cli.endpoint import (
    Hardware,
    KeyFile,
    MeasuredSite,
    Model,
    OutFile,
    Seed,
    Url,
    open_endpoint,
    seed_of,
)
from tetraspark.cli.lengths import MOST
from tetraspark.cli.line import Json
from tetraspark.cli.number import Timeout
from tetraspark.cli.output import err, out
from tetraspark.cli.report_file import about_line, conclude, print_changed, safe
from tetraspark.errors import Problem, UsageError
from tetraspark.measure.about import About
from tetraspark.measure.decode import Cell, DecodePlan, measure_decode
from tetraspark.measure.endpoint import Endpoint
from tetraspark.measure.prompts import KINDS, Kind
from tetraspark.measure.stream import GREEDY, SAMPLED, Sampling

SAMPLINGS = {"greedy": (GREEDY,), "sampled": (SAMPLED,), "both": (GREEDY, SAMPLED)}

COUNT = re.compile("[0-9]{1,3}")


def decode(
    context: typer.Context,
    site: MeasuredSite = None,
    url: Url = None,
    model: Model = None,
    key_file: KeyFile = None,
    hardware: Hardware = None,
    concurrency: Annotated[
        str, typer.Option("--concurrency", "-c", help="Requests at once, a list.")
    ] = "1,2,4,8,16",
    kinds: Annotated[
        str, typer.Option("--kinds", help=f"Kinds of text: {', '.join(KINDS)}.")
    ] = ",".join(KINDS),
    sampling: Annotated[
        str, typer.Option("--sampling", help="greedy, sampled or both.")
    ] = "greedy",
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=16, max=MOST, help="A request.")
    ] = 256,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Measured, a cell.")] = 3,
    warm_up: Annotated[
        int, typer.Option("--warm-up", min=0, max=1000, help="Dropped, a cell.")
    ] = 1,
    seed: Seed = None,
    timeout: Timeout = 600.0,
    out_file: OutFile = None,
    json: Json = False,
) -> None:
    """Measure decoding; exit code 1 when a cell may not be believed."""
    plan = DecodePlan(
        kinds=_kinds(kinds),
        samplings=_samplings(sampling),
        concurrencies=_concurrencies(concurrency),
        max_tokens=max_tokens,
        rounds=rounds,
        warm_up=warm_up,
        seed=seed_of(seed),
        timeout=timeout,
    )
    endpoint = open_endpoint(context, site, url, model, key_file, hardware)
    cells = _measured(endpoint, plan)
    changed = endpoint.changed()
    about = endpoint.about("decode")
    report = {
        "about": about.as_dict(),
        "plan": plan,
        "cells": [cell.as_dict() for cell in cells],
        "changed_settings": changed,
        "ok": all(cell.valid for cell in cells) and not changed,
    }
    key = endpoint.api.key
    conclude(report, out_file, json, key, lambda: _print(about, cells, changed))


def _measured(endpoint: Endpoint, plan: DecodePlan) -> list[Cell]:
    cells = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("decode", total=len(plan.cells))
        for cell in measure_decode(endpoint.api, plan, endpoint.acceptance_length):
            cells.append(cell)
            progress.update(task, advance=1, description=f"{cell.kind} c{cell.concurrency}")
    return cells


def _print(about: About, cells: list[Cell], changed: list[str]) -> None:
    out.print(about_line(about), markup=False)
    table = Table("text", "sampling", "at once", "tok/s", "spread", "first token, s", "", box=None)
    for cell in cells:
        firsts = sorted(second for one in cell.rounds for second in one.first_token_seconds)
        table.add_row(
            cell.kind,
            cell.sampling,
            str(cell.concurrency),
            "-" if cell.tokens_per_second is None else f"{cell.tokens_per_second:.1f}",
            "-" if cell.spread is None else f"{cell.spread:.0%}",
            f"{firsts[len(firsts) // 2]:.2f}" if firsts else "-",
            escape(safe("; ".join(("invalid", *cell.faults)))) if cell.faults else "",
        )
    out.print(table)
    if any(not cell.counted and one.completion_tokens for cell in cells for one in cell.rounds):
        out.print("this server counts tokens at the end only: within answers they are by length")
    print_changed(changed)


def _kinds(text: str) -> tuple[Kind, ...]:
    names = text.split(",")
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        wanted = ", ".join(KINDS)
        raise UsageError(Problem("--kinds", unknown[0], wanted, f"--kinds {','.join(KINDS)}"))
    return tuple(kind for kind in KINDS if kind in names)


def _samplings(text: str) -> tuple[Sampling, ...]:
    if text not in SAMPLINGS:
        raise UsageError(Problem("--sampling", text, "greedy, sampled or both", "--sampling both"))
    return SAMPLINGS[text]


def _concurrencies(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(COUNT.fullmatch(part) and 1 <= int(part) <= 256 for part in parts):
        wanted = "numbers from 1 to 256 with commas"
        raise UsageError(Problem("--concurrency", text, wanted, "--concurrency 1,2,4"))
    return tuple(dict.fromkeys(int(part) for part in parts))
