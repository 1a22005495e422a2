"""What `serve` does with the nodes of a fleet, and with what a rank said before it failed.

The one rank is a stand-in on this machine; the nodes are text.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doctor.faults import FAULTS
from tests.doctor.stand import site
from tests.line.spark_nodes import NVRM, Nodes
from tests.line.test_effective import Served
from tetraspark.cli.status import _print
from tetraspark.doctor.baseline import baseline_path, read_baseline
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.meminfo import GIB
from tetraspark.fleet.process import labelled
from tetraspark.fleet.run_files import log_path
from tetraspark.line import serve as serving
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.progress import Progress

OFTEN = ("[env]", "[startup]\npoll_seconds = 1\n[env]")
DECODE = (
    "[2026-11-30 08:00:00 TP0] Decode batch, #running-req: 2, full token usage: {}, "
    "swa token usage: 1.00, #queue-req: 2\n"
)


def quiet(progress: Progress) -> None:
    """Take no notice."""


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    (tmp_path / "four").mkdir()
    return Nodes(site(tmp_path / "four", OFTEN))


@pytest.fixture
def line(tmp_path: Path) -> Served:
    return Served(tmp_path)


def serve(
    line: Served,
    nodes: Nodes,
    behaviour: dict[str, object],
    observe: Callable[[Progress], None] = quiet,
    despite: tuple[str, ...] = (),
) -> serving.Served:
    told = {"told": {"tp_size": 1}}
    line.behaviour.write_text(json.dumps(told | behaviour))
    start = FleetStart(nodes.loaded, nodes, despite)
    return serving.serve(
        line.loaded, line.plan, None, line.runner, line.store, False, observe, fleet=start
    )


def fails(
    line: Served,
    nodes: Nodes,
    behaviour: dict[str, object],
    observe: Callable[[Progress], None] = quiet,
) -> tuple[Problem, ...]:
    with pytest.raises(RunError) as caught:
        serve(line, nodes, behaviour, observe)
    assert labelled(line.store.root) == []
    return caught.value.problems


def test_nodes_that_are_not_fit_refuse_the_start_before_there_is_a_run(
    line: Served, nodes: Nodes
) -> None:
    FAULTS["WEIGHTS.VOLUME"].make(nodes)
    (problem,) = fails(line, nodes, {})
    assert problem.where == "spark2 WEIGHTS.VOLUME"
    assert "docker volume rm tetraspark-four-weights" in problem.fix
    assert line.store.runs() == []


def test_a_ready_line_keeps_states_memory_and_what_was_tolerated(
    line: Served, nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    FAULTS["WEIGHTS.VOLUME"].make(nodes)
    try:
        served = serve(line, nodes, {}, despite=("WEIGHTS",))
        log = log_path(line.store.root / served.run, 0)
        with log.open("a") as file:
            file.write(DECODE.format("0.50") + DECODE.format("0.12"))
        status = line.status()
    finally:
        line.runner.stop(line.store.root, 5, ())
    assert set(read_baseline("four")) == {"spark1", "spark2", "spark3", "spark4"}
    state = json.loads((line.store.root / served.run / "state.json").read_text())
    assert state["mem_free"]["spark4"] == {"before": GIB, "after": 100 * GIB}
    (tolerated,) = status.as_dict()["tolerated"]
    assert (tolerated["id"], tolerated["node"]) == ("WEIGHTS.VOLUME", "spark2")
    assert status.as_dict()["ranks"][0]["usage"]["swa"] == 1.0
    _print(status)
    shown = capsys.readouterr().out
    assert "started despite spark2 WEIGHTS.VOLUME: volume tetraspark-four-weights" in shown
    assert "kv pool of rank 0: full 12% used, swa 100% used, waiting 2: the sliding-window" in shown


def test_memory_that_runs_out_meanwhile_ends_the_start(line: Served, nodes: Nodes) -> None:
    def shrink(progress: Progress) -> None:
        nodes[3].memory["MemAvailable"] = 1 << 20

    (problem,) = fails(line, nodes, {"hang": "Load weight begin"}, shrink)
    assert problem.where == "spark3"
    assert "MemAvailable 1.0 GiB" in problem.seen
    assert not baseline_path("four").exists()


def test_a_failure_comes_with_its_cause_and_the_drivers_complaints(
    line: Served, nodes: Nodes
) -> None:
    nodes.dmesg = NVRM

    def complain(progress: Progress) -> None:
        nodes.dmesg = NVRM * 2

    behaviour = {"pause": 0.3, "fail": "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB"}
    first, *complaints = fails(line, nodes, behaviour, complain)
    assert first.where == "rank 0 (node0)"
    assert "(out of GPU memory: weights, KV pool and graphs together" in first.seen
    assert first.fix.startswith("lower engine.kv_tokens")
    assert [one.where for one in complaints] == ["spark1", "spark2", "spark3", "spark4"]
    assert "1 more NVRM lines" in complaints[0].seen
    assert "out of GPU memory" in str(line.status().reason)
