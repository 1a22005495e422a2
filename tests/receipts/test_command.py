"""`tetraspark receipts`: what it prints, and what it says of damaged ones."""

import json
from pathlib import Path

import pytest

from tests.receipts.made import LOCAL, node, receipt
from tests.serving import write_site
from tetraspark.cli.receipts import diff, list_, show
from tetraspark.errors import UsageError
from tetraspark.fleet.meminfo import GIB
from tetraspark.receipts.store import ReceiptStore

A, B = "20261101-000000-000001", "20261102-000000-000001"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with two receipts: an update took memory between them."""
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    store = ReceiptStore(tmp_path / "state" / "ops")
    store.keep(receipt(A, nodes=(node(idle_bytes=110 * GIB),)))
    after = node(kernel="6.17.0-1031", idle_bytes=102 * GIB)
    store.keep(receipt(B, nodes=(after,), rollback_of=A, tolerated=("GPU.PRESENT",)))
    return write_site(tmp_path, "ops")


def test_the_list_is_a_row_a_receipt(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list_(site)
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["receipt", "served", "site"]
    assert first.split()[0] == A and "6.17.0-1026" in first
    assert second.split()[0] == B and second.rstrip().endswith(f"rollback to {A}")
    list_(site, json=True)
    assert [one["receipt"] for one in json.loads(capsys.readouterr().out)] == [A, B]


def test_a_damaged_one_is_told_and_hides_no_other(
    site: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "state" / "ops" / "receipts" / f"{A}.json").write_text("{")
    list_(site)
    told = capsys.readouterr()
    assert B in told.out and A not in told.out.replace(f"rollback to {A}", "")
    assert f"{A}.json" in told.err


def test_one_is_shown(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(site=site)
    told = capsys.readouterr().out
    for text in (
        f"receipt {B}",
        "102.0 GiB",
        "GPU.PRESENT",
        "a rollback to",
        "'2+2?'",
        "1 of 1",
        "collectives: ",
    ):
        assert text in told
    show("20261101", site=site, json=True)
    assert json.loads(capsys.readouterr().out)["nodes"][0]["kernel"] == "6.17.0-1026"
    show(A, site=site, site_text=True)
    assert capsys.readouterr().out == LOCAL


def test_the_difference_is_of_the_two_newest(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    diff(site=site)
    told = capsys.readouterr().out
    assert f"from {A} to {B}: 3 changes" in told
    assert "8.0 GiB less" in told
    diff(B, A, site=site, json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["before"], found["after"]) == (B, A)
    assert found["changes"][1]["text"].endswith("102.0 GiB -> 110.0 GiB, 8.0 GiB more")


def test_one_receipt_has_none_to_differ_from(site: Path) -> None:
    with pytest.raises(UsageError, match="is the first one"):
        diff(None, A, site=site)


def test_a_line_without_receipts_says_so(tmp_path: Path, site: Path) -> None:
    other = write_site(tmp_path, "other")
    with pytest.raises(UsageError, match="no receipt"):
        show(site=other)


def test_a_line_that_was_never_served_is_not_known_by_name(site: Path) -> None:
    with pytest.raises(UsageError, match="no line 'nope'"):
        list_(site, line="nope")
