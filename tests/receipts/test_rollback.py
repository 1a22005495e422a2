"""Whether what a receipt recorded is there still, and the plan of it: on a local line."""

import dataclasses
from pathlib import Path

import pytest

from tests.receipts.made import IMAGE, node, receipt
from tests.serving import write_site
from tetraspark.cli.line import open_line
from tetraspark.cli.receipt_taker import ReceiptTaker
from tetraspark.errors import RunError, UsageError
from tetraspark.fleet.probe import probe_all
from tetraspark.fleet.runner import Inventory
from tetraspark.fleet.this_machine import ThisMachine
from tetraspark.line.api import Answer
from tetraspark.line.collective_settings import without_transport
from tetraspark.line.local_plan import local_plan
from tetraspark.line.run import RunStore
from tetraspark.line.serve import Served
from tetraspark.receipts.look import receipt_wanted, served_nodes
from tetraspark.receipts.receipt import ServeReceipt
from tetraspark.receipts.rollback import (
    keep_it,
    left_out,
    recorded_site,
    require_same_plan,
    require_there,
    tags,
    target,
)
from tetraspark.receipts.store import ReceiptStore
from tetraspark.receipts.take import take_receipt
from tetraspark.site.load import LoadedSite, load_site

INVENTORY = Inventory("/venv/bin/python", "0.5.23", (0, 1), ("triton",), (31000, 1, 2, 3, 4))
LATER = dataclasses.replace(INVENTORY, ports=(32000, 5, 6, 7, 8), cpus=(3,), standins=())
ANSWER = Served("", "http://127.0.0.1:1/v1", "tiny", Answer("42", "stop", 1, 2), {"load": 1.0})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local site whose model lies beside it, named from there."""
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"architectures": ["A"]}')
    (model / "model.safetensors").write_bytes(b"12345678")
    file = write_site(tmp_path, "ops")
    text = file.read_text()
    (named,) = (one for one in text.splitlines() if one.startswith("path = "))
    file.write_text(text.replace(named, 'path = "model"'))
    return file


def taken(site: Path, loaded: LoadedSite | None = None) -> ServeReceipt:
    """Take the receipt of a run, as a start would that is ready."""
    loaded = loaded or load_site(site)
    run = RunStore("ops").create(local_plan(loaded, INVENTORY))
    served = dataclasses.replace(ANSWER, run=run.id)
    found = probe_all(ThisMachine(), receipt_wanted(loaded))
    nodes = served_nodes(loaded, found, {}, {"localhost": 1})
    return take_receipt(loaded, run, served, nodes, None)


def again(made: ServeReceipt) -> LoadedSite:
    return recorded_site(made, Path("kept.json"))


def test_nothing_changed_and_the_paths_are_the_sites_own(site: Path) -> None:
    made = taken(site)
    original = load_site(site)
    site.write_text("name = [")
    loaded = again(made)
    require_there(made, loaded, ThisMachine())
    require_same_plan(made, local_plan(loaded, LATER))
    assert (loaded.path, loaded.sha256) == (site, original.sha256)
    assert loaded.site == original.site
    assert loaded.resolve(loaded.site.model.path, "model.path") == site.with_name("model")


@pytest.mark.parametrize(
    ("name", "data"),
    [("config.json", '{"architectures": ["B"]}'), ("model.safetensors", "9"), ("new.json", "{}")],
)
def test_another_checkpoint_is_named(site: Path, name: str, data: str) -> None:
    made = taken(site)
    site.with_name("model").joinpath(name).write_text(data)
    with pytest.raises(RunError) as caught:
        require_there(made, again(made), ThisMachine())
    (problem,) = caught.value.problems
    assert problem.where == f"localhost:{site.with_name('model')}"
    assert problem.seen.startswith("another checkpoint: ")
    assert "2 files, 32 bytes" in problem.wanted


def test_a_checkpoint_that_is_gone_is_named(site: Path) -> None:
    made = taken(site)
    site.with_name("model").rename(site.with_name("away"))
    with pytest.raises(RunError, match="another checkpoint: nothing"):
        require_there(made, again(made), ThisMachine())


def test_a_plan_that_this_tetraspark_makes_otherwise_is_refused(site: Path) -> None:
    made = taken(site)
    other = {**made.plan, "settings": made.plan["settings"][1:]}
    with pytest.raises(RunError) as caught:
        require_same_plan(
            made.model_copy(update={"plan": other}), local_plan(again(made), INVENTORY)
        )
    (problem,) = caught.value.problems
    assert problem.where == f"setting {made.plan['settings'][0]['name']}"
    assert problem.wanted.startswith("absent, as in receipt ")


def test_a_start_without_the_transport_is_served_without_it_again(site: Path) -> None:
    loaded = load_site(site)
    with_it, without = taken(site), taken(site, without_transport(loaded))
    assert (with_it.plan["transport"], without.plan["transport"]) == ("shm", "off")
    assert with_it.site_text == without.site_text
    for made in (with_it, without):
        planned = local_plan(again(made), LATER)
        require_same_plan(made, planned)
        assert planned.transport == made.plan["transport"]
    assert left_out(without) and not left_out(with_it)
    assert keep_it(without, again(without))[-1].startswith("[collectives] transport")


def test_a_site_that_is_not_taken_any_more_is_told_of_the_receipt(site: Path) -> None:
    text = site.read_text().replace("[engine]", '[engine]\nold_key = "1"')
    made = taken(site).model_copy(update={"site_text": text})
    with pytest.raises(UsageError) as caught:
        again(made)
    assert caught.value.problems[0].where.startswith(f"kept.json: site_text, once {site}:")
    assert "old_key" in str(caught.value)


def test_a_node_that_the_receipt_does_not_tell_is_refused(site: Path) -> None:
    made = taken(site)
    for nodes in ((), (node("localhost", error="ssh failed"),)):
        without = made.model_copy(update={"nodes": nodes})
        with pytest.raises(RunError, match="it was not reached when that was taken"):
            require_there(without, again(made), ThisMachine())


def test_the_site_is_written_by_what_keeps_it(site: Path) -> None:
    made = taken(site)
    (command,) = keep_it(made, again(made))
    assert command == f"tetraspark receipts show {made.id} --line ops --site-text > {site}"


def test_each_image_gets_one_name_of_its_own() -> None:
    made = receipt(nodes=(node("spark1"), node("spark2", image=None)))
    (one,) = tags(made)
    name = f"tetraspark-rollback:local-{made.id}"
    assert one.argv == ("docker", "tag", IMAGE.id, name)


def test_there_may_be_nothing_to_go_back_to(tmp_path: Path) -> None:
    store = ReceiptStore(tmp_path)
    with pytest.raises(UsageError, match="something to go back to"):
        target(store, None, None)
    store.keep(receipt())
    assert target(store, None, receipt().id[:8]).id == receipt().id


def test_a_receipt_that_cannot_be_kept_leaves_the_line_ready(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_line(site) as line:
        run = line.store.create(local_plan(line.loaded, INVENTORY))
        (line.store.root / "receipts").write_text("in the way")
        taker = ReceiptTaker(line, None, None, None)
        taker.keep(dataclasses.replace(ANSWER, run=run.id))
    told = capsys.readouterr().err
    assert "warning: " in told and "not kept: " in told and "the line itself is" in told


def test_idle_memory_is_told_of_a_line_that_was_not_there(site: Path) -> None:
    with open_line(site) as line:
        run = line.store.create(local_plan(line.loaded, INVENTORY))
        ReceiptTaker(line, None, None, None).keep(dataclasses.replace(ANSWER, run=run.id))
        (kept,) = ReceiptStore(line.store.root).read(run.id).nodes
    assert kept.idle_bytes is not None and kept.idle_bytes > 1 << 20
