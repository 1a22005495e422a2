"""`tetraspark needle`: is a key phrase found in a long text, by length and depth?"""

from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from tetraspark.cli.bench_prefill import TextFile, middle
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
from tetraspark.cli.lengths import lengths_of
from tetraspark.cli.line import Json
from tetraspark.cli.number import Timeout
from tetraspark.cli.output import err, out
from tetraspark.cli.report_file import about_line, conclude, print_changed, safe
from tetraspark.errors import Problem, UsageError
from tetraspark.measure.corpus import corpus_of
from tetraspark.measure.needle import Needle, measure_needle
from tetraspark.measure.secret import without_key


def needle(
    context: typer.Context,
    site: MeasuredSite = None,
    url: Url = None,
    model: Model = None,
    key_file: KeyFile = None,
    hardware: Hardware = None,
    lengths: Annotated[
        str, typer.Option("--lengths", help="Tokens of the text, a list; up to 1M.")
    ] = "4k,32k,128k",
    depths: Annotated[
        str, typer.Option("--depths", help="Where the phrase stands: 0 beginning, 1 end.")
    ] = "0,0.25,0.5,0.75,1",
    cases: Annotated[
        int, typer.Option("--cases", min=1, max=1000, help="Of each length and depth.")
    ] = 1,
    text: TextFile = None,
    seed: Seed = None,
    timeout: Timeout = 1800.0,
    out_file: OutFile = None,
    json: Json = False,
) -> None:
    """Look for key phrases; exit code 1 when one is not found."""
    wanted, places = lengths_of(lengths), _depths(depths)
    corpus = corpus_of(text)
    endpoint = open_endpoint(context, site, url, model, key_file, hardware)
    found: list[Needle] = []
    drawn = seed_of(seed)
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("needle", total=len(wanted) * len(places) * cases)
        for case in measure_needle(endpoint.api, corpus, wanted, places, cases, drawn, timeout):
            found.append(case)
            progress.update(task, advance=1, description=f"{case.wanted_tokens} at {case.depth}")
    changed = endpoint.changed()
    about = endpoint.about("needle")
    report = {
        "about": about.as_dict(),
        "corpus": corpus.name,
        "seed": drawn,
        "cases": [case.as_dict() for case in found],
        "changed_settings": changed,
        "ok": all(case.found for case in found) and not changed,
    }

    def show() -> None:
        out.print(about_line(about), markup=False)
        out.print(_table(found, wanted, places))
        for case in (case for case in found if not case.found):
            said = "; ".join(case.faults) or f"said {without_key(case.answer, endpoint.api.key)!r}"
            place = f"{case.wanted_tokens} tokens, depth {case.depth:g}"
            out.print(f"missed at {place}: {case.phrase!r}, {safe(said)}", markup=False)
        print_changed(changed)

    conclude(report, out_file, json, endpoint.api.key, show)


def _table(found: list[Needle], lengths: tuple[int, ...], depths: tuple[float, ...]) -> Table:
    places = (f"depth {depth:g}" for depth in depths)
    table = Table("tokens wanted", "tokens", *places, "first token, s", box=None)
    for length in sorted(lengths):
        row = [case for case in found if case.wanted_tokens == length]
        counted = middle((case.prompt_tokens for case in row), 0)
        first = middle((case.first_token_seconds for case in row), 2)
        cells = []
        for depth in depths:
            here = [case for case in row if case.depth == depth]
            cells.append(f"{sum(case.found for case in here)} of {len(here)}")
        table.add_row(str(length), counted, *cells, first)
    return table


def _depths(text: str) -> tuple[float, ...]:
    try:
        found = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        found = ()
    if not found or not all(0 <= depth <= 1 for depth in found):
        wanted = "numbers from 0 to 1 with commas"
        raise UsageError(Problem("--depths", repr(text), wanted, "--depths 0,0.5,1"))
    return found
