"""What every verb about a line opens: the site, its runs, the runner, and the API key."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tetraspark.cli.output import print_problems
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.local import LocalRunner
from tetraspark.line.api import read_key
from tetraspark.line.run import Run, RunStore
from tetraspark.site.load import LoadedSite, load_site

SitePath = Annotated[
    Path,
    typer.Option("--site", envvar="TETRASPARK_SITE", help="Site file of the line."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, do nothing.")]
DEFAULT_SITE = Path("site.toml")


@dataclass(frozen=True)
class OpenLine:
    """A line as the command line found it."""

    loaded: LoadedSite
    store: RunStore
    runner: LocalRunner

    def key(self) -> str | None:
        """Return the API key. Raises UsageError for a file that cannot be trusted."""
        file = self.loaded.site.api.key_file
        return None if file is None else read_key(self.loaded.resolve(file, "api.key_file"))

    def run(self) -> tuple[Run, dict[str, Any]]:
        """Return the newest run and its plan. Raises UsageError when there is none."""
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
        return run, run.plan()


def open_line(path: Path) -> OpenLine:
    """Load the site (warnings go to stderr) and what belongs to it.

    Raises UsageError for a site that cannot be used, whose ranks are not on this machine, or
    whose name is taken by the live line of another site file.
    """
    loaded = load_site(path)
    print_problems(loaded.warnings, "warning", "yellow")
    _require_local(loaded)
    line = OpenLine(loaded, RunStore(loaded.site.name), LocalRunner())
    _require_own(line)
    return line


def _require_local(loaded: LoadedSite) -> None:
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


def _require_own(line: OpenLine) -> None:
    """Refuse to act on a line of the same name that another site file is serving."""
    run = line.store.latest()
    if run is None or not line.runner.live(line.store.root):
        return
    owner = run.plan()["site"]
    if owner != str(line.loaded.path.resolve()):
        name = line.loaded.site.name
        raise UsageError(
            Problem(
                where=line.loaded.origin("name").where,
                seen=f"line {name!r} is being served from {owner}",
                wanted="a name of its own for each site",
                fix=f"use --site {owner}, or `tetraspark stop --line {name}`, or another name here",
            )
        )
