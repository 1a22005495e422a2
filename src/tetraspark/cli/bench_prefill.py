"""`tetraspark bench prefill`: tokens a second until the first token, by length."""

import statistics
from collections.abc import Iterable
from pathlib import Path
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
from tetraspark.cli.lengths import lengths_of
from tetraspark.cli.line import Json
from tetraspark.cli.number import Timeout
from tetraspark.cli.output import err, out
from tetraspark.cli.report_file import about_line, conclude, print_changed, safe
from tetraspark.measure.corpus import corpus_of
from tetraspark.measure.prefill import Row, Text, measure_prefill

TextFile = Annotated[
    Path | None, typer.Option("--text", help="Real text to use, in place of this Python's own.")
]


def prefill(
    context: typer.Context,
    site: MeasuredSite = None,
    url: Url = None,
    model: Model = None,
    key_file: KeyFile = None,
    hardware: Hardware = None,
    lengths: Annotated[
        str, typer.Option("--lengths", help="Tokens a prompt, a list; 4k is 4096.")
    ] = "4k,8k,16k,32k,64k,128k,262144",
    text: TextFile = None,
    with_filler: Annotated[
        bool, typer.Option("--filler", help="Measure filler too, in rows of its own.")
    ] = False,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, max=1000, help="Measured, a length.")
    ] = 3,
    seed: Seed = None,
    timeout: Timeout = 1800.0,
    out_file: OutFile = None,
    json: Json = False,
) -> None:
    """Measure prefill on real text; exit code 1 when a row may not be believed."""
    wanted = lengths_of(lengths)
    corpus = corpus_of(text)
    texts: tuple[Text, ...] = ("real", "filler") if with_filler else ("real",)
    endpoint = open_endpoint(context, site, url, model, key_file, hardware)
    rows: list[Row] = []
    drawn = seed_of(seed)
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("prefill", total=len(wanted) * len(texts))
        measured = measure_prefill(endpoint.api, corpus, wanted, texts, repeats, drawn, timeout)
        for row in measured:
            rows.append(row)
            progress.update(task, advance=1, description=f"{row.text} {row.wanted_tokens}")
    changed = endpoint.changed()
    about = endpoint.about("prefill")
    report = {
        "about": about.as_dict(),
        "corpus": corpus.name,
        "seed": drawn,
        "rows": [row.as_dict() for row in rows],
        "changed_settings": changed,
        "ok": all(row.valid for row in rows) and not changed,
    }

    def show() -> None:
        out.print(about_line(about), markup=False)
        out.print(f"# real text: {safe(corpus.name)}", markup=False)
        out.print(_table(rows))
        print_changed(changed)

    conclude(report, out_file, json, endpoint.api.key, show)


def middle(values: Iterable[float | None], digits: int) -> str:
    """Return the median of what is known, and `-` where nothing is."""
    known = [value for value in values if value is not None]
    return f"{statistics.median_high(known):.{digits}f}" if known else "-"


def _table(rows: list[Row]) -> Table:
    table = Table("text", "tokens wanted", "tokens", "tok/s", "first token, s", "", box=None)
    for row in rows:
        faults = dict.fromkeys(fault for one in row.requests for fault in one.faults)
        table.add_row(
            row.text,
            str(row.wanted_tokens),
            middle((one.prompt_tokens for one in row.requests), 0),
            "-" if row.tokens_per_second is None else f"{row.tokens_per_second:.0f}",
            middle((one.first_token_seconds for one in row.requests), 2),
            escape(safe("; ".join(("invalid", *faults)))) if faults else "",
        )
    return table
