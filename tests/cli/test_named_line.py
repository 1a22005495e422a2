"""A line whose site is no use and whose newest plan is damaged: what tells how it is reached."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.receipts.made import receipt
from tests.serving import ROOT
from tetraspark.cli.named_line import open_runner, reached_by
from tetraspark.fleet.containers import Containers
from tetraspark.fleet.local import LocalRunner
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.run import RunStore
from tetraspark.receipts.store import ReceiptStore
from tetraspark.site.load import load_site


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A fleet's line that was served twice; the plan of the second run is damaged."""
    store, plan = (
        RunStore("four", tmp_path),
        fleet_plan(load_site(ROOT / "sites" / "four-sparks-switch.toml")),
    )
    store.create(plan)
    (store.create(plan).folder / "plan.json").write_text("[" * 100_000)
    return store


def nodes(plan: dict[str, Any] | None) -> list[str]:
    return [one["node"] for one in plan["logins"]] if plan else []


def test_an_older_run_tells_the_nodes(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    plan = reached_by(store)
    assert nodes(plan) == ["spark1", "spark2", "spark3", "spark4"]
    said = capsys.readouterr().err
    assert "plan.json" in said and f"as run {store.runs()[0].id} had them" in said
    with open_runner(plan) as runner:
        assert isinstance(runner, Containers)


def test_a_receipt_tells_them_where_no_run_does_and_one_without_a_plan_does_not(
    store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    first = store.runs()[0].folder / "plan.json"
    plan = json.loads(first.read_text())
    first.write_text("{}")
    assert reached_by(store) is None
    receipts = ReceiptStore(store.root)
    receipts.keep(receipt(id="20261101-000000-000001", plan=plan))
    receipts.keep(receipt(id="20261102-000000-000001"))
    (receipts.folder / "20261103-000000-000001.json").write_text("[" * 100_000)
    assert nodes(reached_by(store)) == ["spark1", "spark2", "spark3", "spark4"]
    assert "as receipt 20261101-000000-000001 has them" in capsys.readouterr().err


def test_without_any_plan_the_processes_of_this_machine_are_looked_for() -> None:
    with open_runner(None) as runner:
        assert isinstance(runner, LocalRunner)
