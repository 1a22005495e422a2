"""Receipts and counters: what they are bound to, and what they refuse. Pure."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ring_apply.machines import plan_of
from tetraspark.doctor.check import Check
from tetraspark.errors import RunError
from tetraspark.fleet.command import Result
from tetraspark.ring.perftest import read_perftest
from tetraspark.ring.receipt import Receipt, receipt, require_fresh, stale
from tetraspark.ring.traffic import Sent
from tetraspark.ring.verify import Counted, counter_checks
from tetraspark.ring.view import Identity
from tetraspark.ring.wanted import rule_key

PLAN = plan_of()
NODE = Identity({"enp1s0f0np0": "02:00:00:00:00:00"}, {"rocep1s0f0": "28.45.4028"}, "6.17.0-1031")
OK = Check("RING.RELAY", "spark0", "ok", "10 packets", "10")


def test_a_receipt_is_read_back_and_a_changed_one_refused(tmp_path: Path) -> None:
    file = tmp_path / "ring" / "receipt.json"
    assert Receipt.read(file) is None
    made = receipt(PLAN.id, "frames", {"spark0": NODE}, [OK])
    made.write(file)
    assert Receipt.read(file) == made
    body = json.loads(file.read_text())
    body["nodes"]["spark0"]["kernel"] = "7.0.0"
    file.write_text(json.dumps(body))
    with pytest.raises(RunError, match="as it was written"):
        Receipt.read(file)
    file.write_text("[]")
    with pytest.raises(RunError, match="no receipt"):
        Receipt.read(file)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(NODE, kernel="7.0.0"), "spark0 kernel: was 6.17.0-1031, is 7.0.0"),
        (
            replace(NODE, firmware={"rocep1s0f0": None}),
            "spark0 firmware rocep1s0f0: was 28.45.4028, is None",
        ),
        (replace(NODE, macs={}), "spark0 macs enp1s0f0np0: was 02:00:00:00:00:00, is None"),
    ],
)
def test_a_stale_receipt_says_which_part_changed(now: Identity, said: str) -> None:
    made = receipt(PLAN.id, "frames", {"spark0": NODE}, [OK])
    assert stale(made, PLAN.id, {"spark0": NODE}) == ()
    assert stale(made, PLAN.id, {"spark0": now}) == (said,)
    with pytest.raises(RunError, match=said.split(":")[0]):
        require_fresh(made, PLAN.id, {"spark0": now})
    assert stale(made, PLAN.id, {}) == ("spark0: not seen",)
    assert stale(made, "f" * 64, {"spark0": NODE})[0].startswith("plan: was")
    require_fresh(made, PLAN.id, {"spark0": NODE})


def test_what_failed_or_was_not_seen_is_no_pass() -> None:
    unseen = Check("RING.PAYLOAD", "spark0", "unknown", "not looked at", "equal", "look")
    made = receipt(PLAN.id, "frames", {"spark0": NODE}, [OK, unseen])
    assert not made.passed
    with pytest.raises(RunError, match="not looked at"):
        require_fresh(made, PLAN.id, {"spark0": NODE})
    with pytest.raises(RunError, match="never verified"):
        require_fresh(None, PLAN.id, {})


def counts(packets: int, forwarded: int = 0, icrc: int | None = 0) -> dict[str, Counted]:
    return {
        one.node: Counted({rule_key(rule): packets for rule in one.rules}, forwarded, {"r": icrc})
        for one in PLAN.nodes
    }


def verdicts(after: dict[str, Counted]) -> dict[str, set[str]]:
    sent = {path: Sent(1000, True, "") for path in PLAN.paths if path.relays}
    found: dict[str, set[str]] = {}
    for one in counter_checks(PLAN, sent, counts(0), after):
        found.setdefault(one.id, set()).add(one.verdict)
    return found


def test_counters_that_show_a_ring_in_hardware() -> None:
    good = {"RING.RELAY": {"ok"}, "RING.FORWARDED": {"ok"}, "RING.ICRC": {"ok"}}
    assert verdicts(counts(1000)) == good
    assert verdicts(counts(2010)) == good, "with an acknowledgement for each"
    assert verdicts(counts(999))["RING.RELAY"] == {"failed"}
    assert verdicts(counts(5000))["RING.RELAY"] == {"failed"}
    assert verdicts(counts(1000, forwarded=1000))["RING.FORWARDED"] == {"failed"}
    assert verdicts(counts(1000, icrc=1))["RING.ICRC"] == {"failed"}
    assert verdicts(counts(1000, icrc=None))["RING.ICRC"] == {"unknown"}


PERFTEST = """\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 4096       5000             11652.10            11650.02           2.982405
---------------------------------------------------------------------------------------
"""


def test_what_perftest_prints() -> None:
    good = Result(0, PERFTEST, "")
    assert read_perftest(good, Result(0, "", "")) == Sent(
        5000, True, "5000 writes of 4096 bytes completed"
    )
    lost = Result(
        1, "", " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81"
    )
    assert not read_perftest(lost, good).delivered
    assert "status 12" in read_perftest(lost, good).seen
    assert not read_perftest(good, Result(124, "", "")).delivered
