"""What a start does on the nodes of a fleet: four Sparks of text, well or with one thing wrong."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.doctor.faults import FAULTS
from tests.doctor.stand import NAMES, site
from tests.line.spark_nodes import NVRM, Nodes, given_back
from tetraspark.doctor.baseline import baseline_path, read_baseline
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.meminfo import GIB
from tetraspark.fleet.rank import RankState
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.progress import Look
from tetraspark.receipts.look import TAGGED, receipt_wanted, served_nodes


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    return Nodes(site(tmp_path))


@dataclass
class Told:
    """A start on the nodes, and what it told."""

    start: FleetStart
    lines: list[str]
    warnings: list[Problem]


def start(nodes: Nodes, *despite: str) -> Told:
    lines, warnings = list[str](), list[Problem]()
    made = FleetStart(nodes.loaded, nodes, despite, lines.append, warnings.append)
    return Told(made, lines, warnings)


def test_nodes_that_are_well_are_started_without_a_word(nodes: Nodes) -> None:
    told = start(nodes)
    assert told.start.look(replacing=False) == {"tolerated": []}
    assert told.warnings == []


def test_one_probe_of_each_node_answers_launch_doctor_and_receipt(nodes: Nodes) -> None:
    for number, node in enumerate(nodes, 1):
        node.say(TAGGED, json.dumps([node.image | {"RepoDigests": [f"four@sha256:{number}"]}]))
    start = FleetStart(nodes.loaded, nodes, also=receipt_wanted(nodes.loaded))
    launch = start.launch()
    start.look(replacing=False)
    nodes[2].say("kernel", "6.17.0-1040-nvidia\n")
    ids = [nodes[number].image["Id"] for number in (1, 2, 3)]
    states = (*(RankState(rank, "running", image=id) for rank, id in enumerate(ids)),)
    for watcher in start.watchers:
        watcher(Look("load", (*states, RankState(3, "unreachable")), ()))
    kept = served_nodes(nodes.loaded, start.found, start.images, {"spark1": 7})
    assert sorted(nodes.probed) == list(NAMES)
    assert [node.node for node in launch.nodes] == [node.node for node in kept] == list(NAMES)
    assert launch.nccl is not None
    assert set(start.states) == set(NAMES)
    assert [one.idle_bytes for one in kept] == [7, None, None, None]
    assert {one.kernel for one in kept} == {"6.17.0-1031-nvidia"}
    assert all(set(one.nics or ()) == {port.rdma for port in nodes.fabric.ports} for one in kept)
    assert all(one.model is not None and one.model.files == 7 for one in kept)
    assert [one.image.id if one.image else None for one in kept] == [*ids, None]
    assert kept[1].image is not None and kept[1].image.digests == ("four@sha256:2",)


def test_every_failure_refuses_the_start_and_names_the_phase(nodes: Nodes) -> None:
    FAULTS["RDMA.MTU"].make(nodes)
    FAULTS["IMAGE.PRESENT"].make(nodes)
    with pytest.raises(RunError) as caught:
        start(nodes).start.look(replacing=False)
    where = [one.where.split()[-1] for one in caught.value.problems]
    assert {"RDMA.MTU", "IMAGE.PRESENT"} <= set(where)
    assert all(one.seen.startswith("preflight: ") for one in caught.value.problems)


def test_a_required_check_that_could_not_be_made_refuses_and_another_is_a_warning(
    nodes: Nodes,
) -> None:
    for command in ("journal", "dmesg"):
        nodes[2].say(command, "", 1, "Operation not permitted")
    told = start(nodes)
    told.start.look(replacing=False)
    assert {one.where for one in told.warnings} == {"spark2 LOG.NVRM", "spark2 LOG.AER"}
    nodes[2].say("gpu processes", "", 124, "no answer")
    with pytest.raises(RunError, match=r"spark2 GPU\.IDLE"):
        start(nodes).start.look(replacing=False)


@pytest.mark.parametrize("despite", ["WEIGHTS.VOLUME", "WEIGHTS", "WEIGHTS."])
def test_what_is_named_is_tolerated_warned_of_and_kept(nodes: Nodes, despite: str) -> None:
    FAULTS["WEIGHTS.VOLUME"].make(nodes)
    told = start(nodes, despite)
    (kept,) = told.start.look(replacing=False)["tolerated"]
    assert kept["id"] == "WEIGHTS.VOLUME"
    assert f"{kept['node']} WEIGHTS.VOLUME" in [one.where for one in told.warnings]
    with pytest.raises(RunError, match=r"WEIGHTS\.VOLUME"):
        start(nodes, "LINK").start.look(replacing=False)


def test_a_volume_of_nfs_that_is_not_there_is_never_tolerated(nodes: Nodes, tmp_path: Path) -> None:
    """Docker would make an empty one, and the engine would find no model."""
    server = 'mode = "nfs"\nnfs_server = "192.168.1.11"'
    nodes.loaded = site(tmp_path, ('mode = "local"', server))
    with pytest.raises(RunError) as caught:
        start(nodes, "WEIGHTS").start.look(replacing=False)
    problems = caught.value.problems
    assert [one.where for one in problems] == [f"spark{n} WEIGHTS.VOLUME" for n in (2, 3, 4)]
    assert problems[0].fix == "tetraspark weights share --apply"


@pytest.mark.parametrize("name", ["RDMA.MTO", "BURN", "ENGINE.VERSION", "rdma"])
def test_a_name_of_no_check_of_a_start_is_refused(nodes: Nodes, name: str) -> None:
    with pytest.raises(UsageError, match="--despite"):
        start(nodes, name)


def test_shards_of_which_a_sample_is_another_refuse_the_start(nodes: Nodes) -> None:
    fault = {"event": "verified", "shard": "engram-l1-r1of4", "bytes": 1, "faults": ["row 7"]}
    nodes.sampled["spark2"] = f'{json.dumps(fault)}\n{{"event": "end"}}\n'
    with pytest.raises(RunError, match=r"spark2 ENGRAM\.SAMPLE: .*engram-l1-r1of4: row 7"):
        start(nodes).start.look(replacing=False)
    nodes.sampled["spark2"] = "Killed\n"
    told = start(nodes)
    told.start.look(replacing=False)
    assert [one.where for one in told.warnings] == ["spark2 ENGRAM.SAMPLE"]


def test_the_page_cache_is_given_back_and_failing_to_is_a_warning(nodes: Nodes) -> None:
    nodes.evicted["spark3"] = given_back("spark3", **{"/m/x": "Permission denied"})
    told = start(nodes)
    free = told.start.free_memory()["mem_free"]
    assert free["spark1"] == {"before": GIB, "after": 100 * GIB}
    assert list(free) == ["spark1", "spark2", "spark4"]
    (line,) = told.lines
    assert "spark1 MemFree 1.0 -> 100.0 GiB, spark2 " in line
    assert [one.where for one in told.warnings] == ["spark3 /m/x"]


def test_complaints_of_the_driver_are_those_since_the_start(nodes: Nodes) -> None:
    nodes.dmesg = NVRM
    told = start(nodes)
    assert told.start.complaints() == []
    told.start.free_memory()
    assert told.start.complaints() == []
    nodes.dmesg += NVRM
    assert len(told.start.complaints()) == 4


def test_L47_a_start_after_an_update_is_warned_of_what_changed(nodes: Nodes) -> None:
    first = start(nodes).start
    first.look(replacing=False)
    assert read_baseline("four") == {}
    first.keep_states()
    assert set(read_baseline("four")) == {"spark1", "spark2", "spark3", "spark4"}
    for node in nodes:
        node.say("kernel", "6.17.0-1040-nvidia\n")
    told = start(nodes)
    told.start.look(replacing=False)
    assert {one.where for one in told.warnings} == {
        f"spark{number} HISTORY.VERSIONS" for number in (1, 2, 3, 4)
    }


def test_a_line_that_makes_way_is_no_measure_of_idle_nodes(nodes: Nodes) -> None:
    told = start(nodes)
    nodes[1].listeners[8888] = "python3"
    told.start.look(replacing=True)
    told.start.keep_states()
    assert read_baseline("four") == {}


def test_states_that_cannot_be_kept_are_a_warning(nodes: Nodes, tmp_path: Path) -> None:
    told = start(nodes)
    told.start.look(replacing=False)
    folder = baseline_path(nodes.loaded.site.name).parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    told.start.keep_states()
    assert "cannot be written" in told.warnings[-1].seen
