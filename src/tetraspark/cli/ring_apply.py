"""`tetraspark ring diff|apply|verify|confirm|rollback|status`: a plan onto the nodes, and off."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.fabric_inventory import Source, of_site
from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.number import number
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.cli.ring_apply_view import (
    print_applied,
    print_diff,
    print_hairpin,
    print_receipt,
    print_rolled_back,
    print_status,
)
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.login import Login, logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.fleet.state_home import require_writable, state_home
from tetraspark.ring.apply import CONFIRM_SECONDS
from tetraspark.ring.apply import apply as apply_plan
from tetraspark.ring.diff import diff as diff_plan
from tetraspark.ring.perftest import Perftest
from tetraspark.ring.plan import RingPlan, read_plan
from tetraspark.ring.receipt import Receipt, require_fresh
from tetraspark.ring.reinitialise import set_hairpin
from tetraspark.ring.rollback import confirm as confirm_plan
from tetraspark.ring.rollback import rollback as roll_back
from tetraspark.ring.status import RingStatus
from tetraspark.ring.verify import verify as verify_plan
from tetraspark.site.load import load_site

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="File of `tetraspark ring plan`.")]


@dataclass(frozen=True)
class OpenRing:
    """A site's nodes, how to reach them, and where its receipt is kept."""

    nodes: tuple[Login, ...]
    runner: SshRunner
    receipt: Path

    def read(self, file: Path) -> RingPlan:
        """Read a plan whose nodes are the site's. Raises UsageError."""
        plan = read_plan(file)
        planned = [one.node for one in plan.members]
        names = [one.node for one in self.nodes]
        # Ranks are numbered by the site, and "opposite" is a matter of ranks.
        if planned != names:
            wanted = f"the nodes of the site in its order: {', '.join(names)}"
            fix = "plan again with this site, or name the other one with --site"
            raise UsageError(Problem(str(file), f"nodes {', '.join(planned)}", wanted, fix))
        return plan


@contextmanager
def open_ring(site: Path) -> Iterator[OpenRing]:
    """Open a fleet site's nodes. Raises UsageError."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    nodes = logins(loaded)
    with Source(site, None, of_site(site)).naming(), SshRunner(nodes) as runner:
        yield OpenRing(nodes, runner, state_home() / loaded.site.name / "ring" / "receipt.json")


def diff(plan: PlanFile, site: SitePath = DEFAULT_SITE, json: Json = False) -> None:
    """Compare a plan with the nodes, changing nothing. Exit code 1 when they differ."""
    with open_ring(site) as ring, err.status("looking at the nodes"):
        found = diff_plan(ring.read(plan), ring.runner)
    print_json(found.as_dict()) if json else print_diff(found)
    if not found.same:
        raise typer.Exit(1)


def apply(
    plan: PlanFile,
    site: SitePath = DEFAULT_SITE,
    seconds: Annotated[
        float,
        number("--seconds", "Undone after these unless confirmed.", 10, 3600),
    ] = CONFIRM_SECONDS,
    hairpin: Annotated[
        bool,
        typer.Option("--hairpin", help="Only set hairpin queues: drops all RDMA for seconds."),
    ] = False,
    json: Json = False,
) -> None:
    """Put a plan in place on all nodes or on none; undone by itself unless it is confirmed."""
    with open_ring(site) as ring, err.status("reading the plan") as view:
        planned = ring.read(plan)
        if hairpin:
            queues = set_hairpin(planned, ring.runner, tell=view.update)
        else:
            done = apply_plan(planned, ring.runner, seconds, view.update)
    if hairpin:
        print_json(queues) if json else print_hairpin(queues)
        return
    print_json(done.as_dict()) if json else print_applied(done, (str(plan), *of_site(site)))


def verify(plan: PlanFile, site: SitePath = DEFAULT_SITE, json: Json = False) -> None:
    """Send over every relayed path and read the counters; writes the receipt.

    Exit code 1 when something failed or could not be seen.
    """
    with open_ring(site) as ring, err.status("looking at the nodes") as view:
        planned = ring.read(plan)
        require_writable(ring.receipt.parent)
        hosts = {one.node: one.host for one in ring.nodes}
        seen = diff_plan(planned, ring.runner)
        gids = {one.node: one.gids for one in seen.views}
        traffic = Perftest(ring.runner, planned, hosts, gids)
        found = verify_plan(planned, ring.runner, seen, traffic, view.update)
        found.write(ring.receipt)
    print_json(found.as_dict()) if json else print_receipt(found)
    if not found.passed:
        raise typer.Exit(1)


def confirm(
    plan: PlanFile,
    site: SitePath = DEFAULT_SITE,
    persist: Annotated[
        bool, typer.Option("--persist", help="Write netplan and a unit: it survives a boot.")
    ] = False,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Keep it without a fresh, passed receipt.")
    ] = False,
    json: Json = False,
) -> None:
    """Keep an applied plan: the nodes no longer undo it by themselves."""
    with open_ring(site) as ring, err.status("confirming"):
        planned = ring.read(plan)
        found = diff_plan(planned, ring.runner)
        if not unverified:
            seen = {one.node: one.identity for one in found.views}
            require_fresh(Receipt.read(ring.receipt), planned.id, seen)
        written = confirm_plan(planned, ring.runner, found, persist)
    if json:
        print_json({"ok": True, "plan": planned.id, "files": list(written)})
        return
    out.print(f"plan {planned.id[:12]} is kept on {len(planned.members)} nodes")
    for one in written:
        out.print(f"wrote {one}", markup=False)


def rollback(
    site: SitePath = DEFAULT_SITE,
    hairpin: Annotated[
        Path | None,
        typer.Option("--hairpin", metavar="PLAN", help="Put hairpin queues of this plan back."),
    ] = None,
    json: Json = False,
) -> None:
    """Undo what is applied: exactly what the nodes' journals own. Exit code 1 if more differs."""
    with open_ring(site) as ring, err.status("rolling back") as view:
        if hairpin is not None:
            queues = set_hairpin(ring.read(hairpin), ring.runner, undo=True, tell=view.update)
        else:
            found = roll_back(tuple(one.node for one in ring.nodes), ring.runner)
    if hairpin is not None:
        print_json(queues) if json else print_hairpin(queues)
        return
    print_json(found.as_dict()) if json else print_rolled_back(found)
    if found.problems:
        raise typer.Exit(1)


def status(plan: PlanFile, site: SitePath = DEFAULT_SITE, json: Json = False) -> None:
    """Show what is applied, for how long, and if its receipt is fresh; 1 unless all is well."""
    with open_ring(site) as ring, err.status("looking at the nodes"):
        planned = ring.read(plan)
        found = RingStatus(diff_plan(planned, ring.runner), Receipt.read(ring.receipt))
    print_json(found.as_dict()) if json else print_status(found)
    if not found.well:
        raise typer.Exit(1)
