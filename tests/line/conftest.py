import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Command, write_site
from tetraspark.fleet.runner import Inventory
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.site.load import LoadedSite, load_site

SITES = Path(__file__).parents[2] / "sites"
KEY = "sk-test-4711-very-secret"
LIMIT = 4096
TWO_SHOT_LIMIT = 1 << 16
# One canary when the watch begins, and others only when something is wrong.
WATCH = """
interval_seconds = 0.5
canary_seconds = 86400.0
canary_deadline_seconds = 2.0
stall_seconds = 6.0
"""
GUARDS = {"max_new_tokens": 160, "default_new_tokens": 70}
SWAPS = {
    # A comment may hold what no value may.
    "port = 30000": f'port = 0\nkey_file = "key"  # not to be copied: {KEY}',
    'transport = "shm"': f'transport = "shm"\nmax_reduce_bytes = {LIMIT}\nfreeze_seconds = 300\n'
    f"max_two_shot_bytes = {TWO_SHOT_LIMIT}\n\n[guards]\n"
    + "\n".join(f"{name} = {value}" for name, value in GUARDS.items()),
}


@pytest.fixture
def inventory() -> Inventory:
    return Inventory("/venv/bin/python", "0.5.23", (0, 1), ("triton",), (31000, 1, 2, 3, 4))


@pytest.fixture
def local_site() -> LoadedSite:
    return load_site(SITES / "local.toml")


@pytest.fixture
def plan(local_site: LoadedSite, inventory: Inventory) -> Plan:
    return local_plan(local_site, inventory)


@pytest.fixture(scope="session")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A line of the real engine with an API key, for more than one file: a start is long."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "key").write_text(KEY + "\n")
    (folder / "key").chmod(0o600)
    command = Command(write_site(folder, "served", SWAPS, watch=WATCH), folder / "state")
    yield command
    command.run("stop")


@pytest.fixture(scope="session")
def served(line: Command) -> Any:
    """What `serve` said when that line was ready."""
    result = line.run("serve", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
