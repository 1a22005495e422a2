"""`tetraspark needle`: is a key phrase found in a long text, by length and depth?"""

from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from tetraspark.cli.bench_prefill import TextFile
from tetraspark.cli.endpoint import (
    Hardware,
    KeyFile,
    MeasuredSite,
    Model,
    OutFile,
    Url,
    open_endpoint,
)
from tetraspark.cli.lengths import lengths_of
from tetraspark.cli.line import Json
from tetraspark.cli.output import err, out, print_json
from tetraspark.cli.report_file import about_line, write_report
from tetraspark.errors import Problem, UsageError
from tetraspark.measure.corpus import library, of_file
from tetraspark.measure.needle import Needle, measure_needle


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
    cases: Annotated[int, typer.Option("--cases", min=1, help="Of each length and depth.")] = 1,
    text: TextFile = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of texts and phrases.")] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Longest silence of a request, seconds.")
    ] = 1800.0,
    out_file: OutFile = None,
    json: Json = False,
) -> None:
    """Look for key phrases; exit code 1 when one is not found."""
    wanted, places = lengths_of(lengths), _depths(depths)
    corpus = library() if text is None else of_file(text)
    endpoint = open_endpoint(context, site, url, model, key_file, hardware)
    found: list[Needle] = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("needle", total=len(wanted) * len(places) * cases)
        for case in measure_needle(endpoint.api, corpus, wanted, places, cases, seed, timeout):
            found.append(case)
            progress.update(task, advance=1, description=f"{case.wanted_tokens} at {case.depth}")
    about = endpoint.about("needle")
    report = {
        "about": about.as_dict(),
        "corpus": corpus.name,
        "cases": [case.as_dict() for case in found],
        "ok": all(case.found for case in found),
    }
    written = write_report(report, out_file)
    if json:
        print_json(written)
    else:
        out.print(about_line(about), markup=False)
        out.print(_table(found, wanted, places))
        for case in (case for case in found if not case.found):
            said = case.error or f"{case.answer!r}"
            place = f"{case.wanted_tokens} tokens, depth {case.depth:g}"
            out.print(f"missed at {place}: {case.phrase!r}, said {said}", markup=False)
    if not report["ok"]:
        raise typer.Exit(1)


def _table(found: list[Needle], lengths: tuple[int, ...], depths: tuple[float, ...]) -> Table:
    table = Table("tokens", *(f"depth {depth:g}" for depth in depths), "first token, s", box=None)
    for length in sorted(lengths):
        row = [case for case in found if case.wanted_tokens == length]
        firsts = sorted(case.first_token_seconds or 0.0 for case in row)
        cells = []
        for depth in depths:
            here = [case for case in row if case.depth == depth]
            cells.append(f"{sum(case.found for case in here)} of {len(here)}")
        table.add_row(str(length), *cells, f"{firsts[len(firsts) // 2]:.2f}")
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
