"""`bench transport` on the real engine: both transports in one run, and each really in use."""

import json
from pathlib import Path

import pytest

from tests.serving import Command, write_site
from tetraspark.line.engine_log import read_receipt
from tetraspark.measure.transport import Sample, TransportReport

pytestmark = pytest.mark.engine


def route_of(log: Path) -> str:
    receipts = [read_receipt(text) for text in log.read_text().splitlines()]
    (receipt,) = [one for one in receipts if one and one["tetraspark"] == "tp_all_reduce"]
    return str(receipt["route"])


def test_the_transport_is_measured_on_and_off(tmp_path: Path) -> None:
    line = Command(write_site(tmp_path, "compared"), tmp_path / "state")
    words = ("--rounds", "1", "--requests", "2", "--max-tokens", "16")
    result = line.run("bench", "transport", *words, "--json", timeout=600)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert [sample["transport"] for sample in report["samples"]] == ["shm", "off"]
    assert all(len(sample["tokens_per_second"]) == 2 for sample in report["samples"])
    assert report["ratio"] > 1, report["medians"]
    assert all(sample["idle_cores"] < 1 for sample in report["samples"])
    runs = sorted((tmp_path / "state" / "compared").glob("2*"))
    routes = [{route_of(run / f"rank{rank}.log") for rank in range(4)} for run in runs]
    assert routes == [{"shm"}, {"engine"}]
    assert "nothing was running" in line.run("stop").stdout


def test_medians_are_over_all_requests_of_a_transport() -> None:
    samples = (
        Sample("shm", (30.0, 10.0), 0.1),
        Sample("off", (5.0, 5.0), 0.3),
        Sample("shm", (20.0, 40.0), 0.2),
    )
    report = TransportReport("x", 4, 2, 64, samples)
    assert (report.speed("shm"), report.speed("off"), report.ratio) == (25.0, 5.0, 5.0)
    assert report.idle("shm") == pytest.approx(0.15)
