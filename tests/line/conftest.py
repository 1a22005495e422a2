from pathlib import Path

import pytest

from tetraspark.fleet.runner import Inventory
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.site.load import LoadedSite, load_site

SITES = Path(__file__).parents[2] / "sites"


@pytest.fixture
def inventory() -> Inventory:
    return Inventory("/venv/bin/python", "0.5.23", (0, 1), ("triton",), (31000, 1, 2, 3, 4))


@pytest.fixture
def local_site() -> LoadedSite:
    return load_site(SITES / "local.toml")


@pytest.fixture
def plan(local_site: LoadedSite, inventory: Inventory) -> Plan:
    return local_plan(local_site, inventory)
