"""`bench transport` on the real engine: every transport in one run, and each really in use."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Command, write_site
from tetraspark.line.engine_log import read_receipt
from tetraspark.measure.transport import Sample, TransportReport, reading

RANKS = 2
"""A start imports less; and two values have one sum in any order, so that gloo's bits are ours."""
SMALL = 16384
"""Bytes from which this site goes two-shot: 32 rows of the tiny model, no decode of it."""
LARGEST = 1 << 19
SWAPS = {
    'transport = "shm"': f'transport = "shm"\nmax_reduce_bytes = {SMALL - 16}\n'
    f"max_two_shot_bytes = {LARGEST}"
}
WORDS = "--rounds 1 --requests 3 --max-tokens 16 --prompt-characters 1500"
"""As in docs/tune.md."""


def route_of(log: Path) -> str:
    receipts = [read_receipt(text) for text in log.read_text().splitlines()]
    (receipt,) = [one for one in receipts if one and one["tetraspark"] == "tp_all_reduce"]
    return str(receipt["route"])


def routed(run: Path) -> list[Any]:
    """Return what each rank of a run counted, or nothing without a communicator."""
    files = [run / f"rank{rank}.collectives.json" for rank in range(RANKS)]
    return [json.loads(file.read_text())["routed"] for file in files if file.exists()]


@pytest.mark.engine
def test_every_transport_is_measured_and_prefills_go_two_shot(tmp_path: Path) -> None:
    line = Command(write_site(tmp_path, "compared", SWAPS, RANKS), tmp_path / "state")
    words = WORDS.split()
    result = line.run("bench", "transport", *words, "--json", timeout=1800)
    assert result.returncode == 0, result.stderr
    (tmp_path / "report.json").write_text(result.stdout)
    report = json.loads(result.stdout)
    assert [sample["transport"] for sample in report["samples"]] == ["shm", "one-shot", "off"]
    assert all(len(sample["tokens_per_second"]) == 3 for sample in report["samples"])
    assert all(len(sample["prefill_tokens_per_second"]) == 3 for sample in report["samples"])
    medians = report["medians"]
    assert (
        report["ratio"] == medians["shm"]["tokens_per_second"] / medians["off"]["tokens_per_second"]
    )
    assert set(report["prefill_ratios"]) == {"one-shot", "off"}
    assert all(sample["idle_cores"] < 1 for sample in report["samples"])
    runs = sorted((tmp_path / "state" / "compared").glob("2*"))
    routes = [{route_of(run / f"rank{rank}.log") for rank in range(RANKS)} for run in runs]
    assert routes == [{"shm"}, {"shm"}, {"engine"}]
    _compare_routes(*map(routed, runs))
    assert len(report["samples"][0]["answer"]) > 20
    assert report["same_answer"], [sample["answer"] for sample in report["samples"]]
    assert "nothing was running" in line.run("stop").stdout


def _compare_routes(two: list[Any], one: list[Any], off: list[Any]) -> None:
    """Prefills of more than 32 tokens went two-shot on all ranks, and nowhere else."""
    way, left = "all_reduce two-shot", "all_reduce left to the engine"
    assert len(two) == len(one) == RANKS
    assert off == []
    assert all(rank == two[0] for rank in two)
    # Five prefills (one to warm up, three timed, one answered) of nine all-reduces each.
    assert two[0][way]["operations"] >= 5 * 9
    assert two[0][way]["bytes"] >= two[0][way]["operations"] * SMALL
    assert two[0].get(left, {"operations": 0})["operations"] == 0
    assert two[0]["all_reduce one-shot"]["operations"] > 16 * 9
    assert way not in one[0]
    assert one[0][left]["operations"] == two[0][way]["operations"]


def test_medians_are_over_all_requests_of_a_transport() -> None:
    samples = (
        Sample("shm", (30.0, 10.0), (900.0, 300.0), 0.1, "x"),
        Sample("off", (5.0, 5.0), (100.0,), 0.3, "x"),
        Sample("shm", (20.0, 40.0), (400.0,), 0.2, "x"),
    )
    report = TransportReport("x", 4, 2, 64, samples)
    assert (report.speed("shm"), report.speed("off"), report.ratio) == (25.0, 5.0, 5.0)
    assert report.idle("shm") == pytest.approx(0.15)
    assert (report.prefill("shm"), report.prefill_ratios) == (400.0, {"off": 4.0})
    assert report.same_answer
    assert report.transports == ("shm", "off")
    other = TransportReport("x", 4, 2, 64, (*samples, Sample("off", (5.0,), (1.0,), 0.1, "y")))
    assert not other.same_answer


def test_readings_have_their_length_and_a_beginning_of_their_own() -> None:
    assert [len(reading(number, 500)) for number in (-1, 0, 12)] == [500] * 3
    assert not reading(1, 500).startswith(reading(2, 500)[:12])
