"""`tetraspark smoke`: does the line answer as an OpenAI-compatible server should?"""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath, open_line
from tetraspark.cli.number import number
from tetraspark.cli.output import err, out, print_json
from tetraspark.line.api import api_of
from tetraspark.line.guard_settings import limits_of
from tetraspark.line.smoke import smoke as smoke_line


def smoke(
    site: SitePath = DEFAULT_SITE,
    timeout: Annotated[float, number("--timeout", "Seconds one request may take.", 0.1)] = 60.0,
    json: Json = False,
) -> None:
    """Send the canary through the public API in several ways; exit code 1 when a check fails."""
    with open_line(site) as line:
        canary = line.loaded.site.model.canary
        plan = line.run()[1]
        api = api_of(plan, line.key(), line.runner)
        with err.status(f"asking {api.url}"):
            checks = smoke_line(api, canary, timeout, limits_of(plan))
    passed = all(check.ok for check in checks)
    if json:
        print_json({"ok": passed, "url": api.url, "checks": [asdict(check) for check in checks]})
    else:
        table = Table("check", "", "observed", "wanted", box=None)
        for check in checks:
            mark = "[green]pass[/]" if check.ok else "[red]FAIL[/]"
            table.add_row(check.id, mark, escape(check.observed), escape(check.wanted))
        out.print(table)
        if canary.expect is None:
            out.print("the text itself is not judged: the site names no model.canary.expect")
    if not passed:
        raise typer.Exit(1)
