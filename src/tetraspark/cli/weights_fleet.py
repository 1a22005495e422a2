"""What every verb of `tetraspark weights` opens: the site, the fleet's sessions, the progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.output import print_problems
from tetraspark.cli.weights_progress import WeightsProgress
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.fleet.state_home import state_home
from tetraspark.site.load import LoadedSite, load_site
from tetraspark.weights.place import Place, place_of
from tetraspark.weights.receipt import NAME

NodeNames = Annotated[
    list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")
]


@dataclass(frozen=True)
class Fleet:
    """A fleet site, where its weights are, its runner, and the view of their progress.

    `receipt` is the file of the line's receipt.
    """

    loaded: LoadedSite
    place: Place
    runner: SshRunner
    view: WeightsProgress
    receipt: Path


@contextmanager
def opened(site: Path) -> Iterator[Fleet]:
    """Load the site and open the fleet's sessions; progress is shown meanwhile."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    place = place_of(loaded)
    view, receipt = WeightsProgress(), state_home() / place.line / NAME
    with SshRunner(logins(loaded)) as runner, view.shown():
        yield Fleet(loaded, place, runner, view, receipt)


def end(ok: bool) -> None:
    """End with exit code 1 unless all is well."""
    if not ok:
        raise typer.Exit(1)
