"""What every verb about a line opens: the site, its runs, the runner, and the API key."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.output import print_problems
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.local import LocalRunner
from tetraspark.line.api import Api, read_key
from tetraspark.line.run import RunStore
from tetraspark.site.load import LoadedSite, load_site

SitePath = Annotated[
    Path,
    typer.Option("--site", envvar="TETRASPARK_SITE", help="Site file of the line."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, do nothing.")]
DEFAULT_SITE = Path("site.toml")


@dataclass(frozen=True)
class OpenLine:
    """A line as the command line found it."""

    loaded: LoadedSite
    store: RunStore
    runner: LocalRunner
    key: str | None

    def api(self) -> Api:
        """Return the API of the newest run. Raises UsageError when the line was never served."""
        run = self.store.latest()
        if run is None:
            raise UsageError(
                Problem(
                    where=f"line {self.loaded.site.name}",
                    seen="never served",
                    wanted="a line that is served",
                    fix=f"tetraspark serve --site {self.loaded.path}",
                )
            )
        plan = run.plan()
        return Api(plan["url"], plan["served_name"], self.key)


def open_line(path: Path) -> OpenLine:
    """Load the site (warnings go to stderr) and what belongs to it.

    Raises UsageError for a site that cannot be used, or whose ranks are not on this machine.
    """
    loaded = load_site(path)
    print_problems(loaded.warnings, "warning", "yellow")
    require_local(loaded)
    key = read_key(loaded.site.api.key_file, loaded.path.parent)
    return OpenLine(loaded, RunStore(loaded.site.name), LocalRunner(), key)


def require_local(loaded: LoadedSite) -> None:
    """Refuse a fleet site: this version plans one, and runs lines on this machine only."""
    if loaded.site.kind != "local":
        raise UsageError(
            Problem(
                where=loaded.origin("kind").where,
                seen=f'kind = "{loaded.site.kind}"',
                wanted='kind = "local": this version runs lines on this machine only',
                fix=f"tetraspark plan --site {loaded.path} prints the commands for each node",
            )
        )
