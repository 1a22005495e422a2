"""The fabric of a site's nodes, as they show it now."""

from pathlib import Path

from tetraspark.cli.output import err, print_problems
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.fabric.survey import chosen, survey
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.site.load import load_site


def ask_fabric(site: Path) -> Inventory:
    """Look at every node of a site. Raises UsageError for a site without [fabric]."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    topology, devices = chosen(loaded)
    with err.status("looking at the nodes"), SshRunner(logins(loaded)) as runner:
        return survey(runner, loaded.site.name, topology, devices)
