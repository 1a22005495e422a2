"""What every verb about a line opens: the site, its runs, the runner, and the API key."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tetraspark.cli.output import print_problems
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.containers import Containers
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.login import Login, logins
from tetraspark.fleet.runner import Runner
from tetraspark.fleet.ssh import SshRunner
from tetraspark.line.fleet_launch import launch_of
from tetraspark.line.launch import Launch
from tetraspark.line.plan import Plan
from tetraspark.line.run import Run, RunStore
from tetraspark.site.key_file import key_file_of, read_key
from tetraspark.site.load import LoadedSite, load_site

SitePath = Annotated[
    Path,
    typer.Option("--site", envvar="TETRASPARK_SITE", help="Site file of the line."),
]
LineName = Annotated[
    str | None, typer.Option("--line", help="Name of the line, when its site is no use.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, do nothing.")]
DEFAULT_SITE = Path("site.toml")
# A node that says nothing for so long is taken for lost; one that serves answers at once.
ALIVE_SECONDS = 9
CONNECT_SECONDS = 5


@dataclass(frozen=True)
class OpenLine:
    """A line as the command line found it; `nodes` reaches those of a fleet."""

    loaded: LoadedSite
    store: RunStore
    runner: Runner
    nodes: SshRunner | None = None

    def launch(self) -> Launch | None:
        """Look at every node of a fleet, and tell what may hurt; a local line needs no looking."""
        if self.nodes is None:
            return None
        launch = launch_of(self.loaded, self.nodes)
        print_problems(launch.warnings, "warning", "yellow")
        return launch

    def key(self) -> str | None:
        """Return the API key. Raises UsageError for a file that cannot be trusted."""
        file = key_file_of(self.loaded)
        return None if file is None else read_key(file)

    def latest(self) -> Run:
        """Return the newest run. Raises UsageError when there is none."""
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
        return run

    def run(self) -> tuple[Run, dict[str, Any]]:
        """Return the newest run and its plan. Raises UsageError when there is none."""
        run = self.latest()
        return run, run.plan()


def warned(plan: Plan) -> Plan:
    """Print what a plan warns of to stderr; returns the plan."""
    print_problems(plan.warnings, "warning", "yellow")
    return plan


@contextlib.contextmanager
def open_line(path: Path) -> Iterator[OpenLine]:
    """Load the site (warnings go to stderr) and what belongs to it, for the length of a `with`.

    Raises UsageError for a site that cannot be used, or whose name is taken by the live line of
    another site file.
    """
    with open_loaded(load(path)) as line:
        yield line


@contextlib.contextmanager
def open_loaded(loaded: LoadedSite) -> Iterator[OpenLine]:
    """Do the same for a site that is loaded already."""
    if loaded.site.kind == "local":
        yield _own(OpenLine(loaded, RunStore(loaded.site.name), LocalRunner()))
        return
    store = RunStore(loaded.site.name)
    with open_nodes((*logins(loaded), *_once_served_on(loaded, store))) as nodes:
        runner = Containers(nodes, nodes.logins, str(loaded.path.resolve()))
        yield _own(OpenLine(loaded, store, runner, nodes))


def open_local_line(path: Path) -> OpenLine:
    """Do the same for a verb that measures lines of this machine; refuses others."""
    loaded = load(path)
    if loaded.site.kind != "local":
        raise UsageError(
            Problem(
                where=loaded.origin("kind").where,
                seen=f'kind = "{loaded.site.kind}"',
                wanted='kind = "local": this measures lines of this machine',
                fix="tetraspark bench --help shows what there is for a fleet",
            )
        )
    return _own(OpenLine(loaded, RunStore(loaded.site.name), LocalRunner()))


def open_nodes(reached: tuple[Login, ...]) -> SshRunner:
    """Return what runs commands on nodes of a line."""
    return SshRunner(reached, ALIVE_SECONDS, CONNECT_SECONDS)


def load(path: Path) -> LoadedSite:
    """Load a site; warnings go to stderr. Raises UsageError for one that cannot be used."""
    loaded = load_site(path)
    print_problems(loaded.warnings, "warning", "yellow")
    return loaded


def _once_served_on(loaded: LoadedSite, store: RunStore) -> tuple[Login, ...]:
    """Return the nodes of the last run that the site no longer has: something may be left there.

    Of the newest one whose plan can be read.
    """
    names = {node.name for node in loaded.site.nodes}
    known = store.planned()
    found = (Login.of(one) for one in (known[1] if known else {}).get("logins", ()))
    return tuple(login for login in found if login.node not in names)


def _last_plan(store: RunStore) -> dict[str, Any]:
    """Return the last run's plan, or nothing: a damaged one must not stand in the way of a stop."""
    run = store.latest()
    try:
        return run.plan() if run else {}
    except RunError:
        return {}


def _own(line: OpenLine) -> OpenLine:
    """Refuse to act on a line of the same name that another site file is serving."""
    owner = _last_plan(line.store).get("site")
    if owner in (None, str(line.loaded.path.resolve())):
        return line
    if line.runner.present(line.store.root).running:
        name = line.loaded.site.name
        raise UsageError(
            Problem(
                where=line.loaded.origin("name").where,
                seen=f"line {name!r} is being served from {owner}",
                wanted="a name of its own for each site",
                fix=f"use --site {owner}, or `tetraspark stop --line {name}`, or another name here",
            )
        )
    return line
