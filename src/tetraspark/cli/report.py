"""`tetraspark report`: JSON reports as one page, beside another set of them."""

from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.line import Json
from tetraspark.cli.output import out, print_json
from tetraspark.errors import Problem, UsageError
from tetraspark.measure import about
from tetraspark.measure.report.compare import Comparison, compare
from tetraspark.measure.report.page import render
from tetraspark.measure.report.read import read_report


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN.json…", help="Reports of one run.")],
    against: Annotated[
        list[Path] | None,
        typer.Option("--against", metavar="OTHER.json", help="Compare with; may be repeated."),
    ] = None,
    out_file: Annotated[Path, typer.Option("--out", help="The page.")] = Path("report.html"),
    json: Json = False,
) -> None:
    """Make one HTML page of reports: plots, tables, ratios, and what may not be believed."""
    found = compare([read_report(one) for one in runs], [read_report(one) for one in against or ()])
    _require_other(out_file, [*runs, *(against or ())])
    try:
        out_file.write_text(render(found, about.now()), encoding="utf-8")
    except OSError as error:
        seen = f"not writable: {error.strerror}"
        raise UsageError(
            Problem(str(out_file), seen, "a file to write to", "another --out")
        ) from error
    if json:
        print_json({"page": str(out_file), **found.as_dict()})
    else:
        _print(found, out_file)


def _require_other(page: Path, reports: list[Path]) -> None:
    """Refuse a page that would overwrite a report."""
    if any(page.exists() and page.samefile(one) for one in reports):
        fix = "--out report.html"
        raise UsageError(Problem(str(page), "one of the reports", "another file for the page", fix))


def _print(found: Comparison, page: Path) -> None:
    cells = [cell for pair in found.pairs for cell in (pair.run, pair.against) if cell]
    invalid = sum(not cell.valid for cell in cells)
    out.print(
        f"{page}: {len(cells)} cells, {invalid} invalid, {found.hardware_class}", markup=False
    )
