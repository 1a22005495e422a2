"""Where the fabric of a line is taken from: its nodes as they show it now, or a saved file."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from tetraspark.cli.line import DEFAULT_SITE
from tetraspark.cli.output import err, print_problems
from tetraspark.errors import Problem, TetrasparkError, UsageError
from tetraspark.fabric.inventory_file import Inventory, load_inventory
from tetraspark.fabric.survey import chosen, survey
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.site.load import LoadedSite, load_site

# Commands of ours named without saying of which fabric: those of a site's nodes, and those that a
# saved inventory will do for.
BARE = re.compile(
    r"tetraspark (?:ring (?P<nodes>diff|apply|verify|confirm|rollback|status)"
    r"|fabric (?:show|nccl|prove)|ring plan)\b(?! --(?:from|site))"
)


def of_site(site: Path) -> tuple[str, ...]:
    """Return the words that name a site on a command line, () for the default one."""
    return () if site == DEFAULT_SITE else ("--site", str(site))


@dataclass(frozen=True)
class Source:
    """A site whose nodes are asked, or a saved inventory in its place.

    `options` are the words that name it on a command line, () for the default.
    """

    site: Path
    saved: Path | None
    options: tuple[str, ...]

    @classmethod
    def of(
        cls, context: typer.Context, site: Path, saved: Path | None, both: bool = False
    ) -> "Source":
        """Take it from the options of the verb that runs. Raises UsageError for two sources.

        `both` is for a verb that takes the inventory from the one and the rest from the other.
        """
        origin = context.get_parameter_source("site")
        typed = origin is not None and origin.name == "COMMANDLINE"
        if typed and saved is not None and not both:
            seen, wanted = "both --site and --from", "one of them: nodes, or a saved inventory"
            raise UsageError(Problem(context.info_name or "", seen, wanted, "leave one out"))
        words = of_site(site) if saved is None or both else ()
        return cls(site, saved, words if saved is None else (*words, "--from", str(saved)))

    def inventory(self, site: LoadedSite | None = None) -> Inventory:
        """Read the file, or ask the nodes of the site, which may be loaded already.

        Raises UsageError, also for a site without [fabric].
        """
        if self.saved is not None:
            return load_inventory(self.saved)
        loaded = site or load_site(self.site)
        if site is None:
            print_problems(loaded.warnings, "warning", "yellow")
        topology, devices = chosen(loaded)
        with err.status("looking at the nodes"), SshRunner(logins(loaded)) as runner:
            return survey(runner, loaded.site.name, topology, devices)

    def named(self, fix: str) -> str:
        """Return a fix whose commands are about this source, as they were typed."""

        def with_options(found: re.Match[str]) -> str:
            options = () if found["nodes"] and self.saved is not None else self.options
            return shlex.join([*found[0].split(), *options])

        return BARE.sub(with_options, fix)

    def name_in(self, problem: Problem) -> Problem:
        """Return a problem with such a fix."""
        return replace(problem, fix=self.named(problem.fix))

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Let errors from within carry such fixes."""
        try:
            yield
        except TetrasparkError as error:
            raise type(error)(*map(self.name_in, error.problems)) from error
