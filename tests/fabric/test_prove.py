"""What the counters of two looks prove."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fabric.example import DEVICES
from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks, relay_rule, ring
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.prove import Proof, prove
from tetraspark.fabric.prove_counters import grown

GB = 10**9 // 4
"""Words of four bytes in a gigabyte."""


def carry(sparks: Sparks, words: int = GB) -> None:
    """Let every function send and receive."""
    for port in sparks.ports:
        for name in ("port_xmit_data", "port_rcv_data"):
            port.counters[name] = port.counters.get(name, 0) + words
        for name in ("port_xmit_packets", "port_rcv_packets"):
            port.counters[name] = port.counters.get(name, 0) + words // 1024


def proof(
    change: Callable[[Sparks], None],
    devices: tuple[str, ...] = DEVICES,
    start: Callable[[Sparks], None] = lambda sparks: None,
) -> Proof:
    sparks = ring()
    start(sparks)
    before = {name: sparks.fabric(name) for name in NAMES}
    change(sparks)
    after = {name: sparks.fabric(name) for name in NAMES}
    return prove(before, after, 10.0, NAMES, dict.fromkeys(NAMES, devices))


def test_four_even_rails_are_proved() -> None:
    found = proof(carry)
    assert found.proved and found.problems() == []
    assert len(found.rails) == 16
    one = found.rails[0]
    assert (one.node, one.device, one.netdev) == ("spark1", "rocep1s0f0", "enp1s0f0np0")
    assert (one.far, one.sent, one.received) == ("spark2 port 1", 10**9, 10**9)
    assert (one.packets_sent, one.share, one.verdict) == (GB // 1024, 0.25, "carries")


def test_R9_a_rail_at_zero_fails_whatever_the_others_carry() -> None:
    def half(sparks: Sparks) -> None:
        carry(sparks)
        for port in sparks.ports:
            if port.half == 1:
                port.counters = {"port_xmit_data": 40, "port_rcv_data": 40}

    found = proof(half)
    assert not found.proved
    idle = [one for one in found.rails if one.verdict == "idle"]
    assert {one.device for one in idle} == {"roceP2p1s0f0", "roceP2p1s0f1"} and len(idle) == 8
    problem = found.problems()[0]
    assert problem.where == "spark1 roceP2p1s0f0"
    assert problem.seen == "0.00 GB, share 0.00, while others carry"
    two = proof(half, ("rocep1s0f0", "rocep1s0f1"))
    assert two.proved, "a device that the site does not name may rest"
    assert [one.used for one in two.rails[:2]] == [True, False]


def test_nothing_moved_proves_nothing() -> None:
    found = proof(lambda sparks: None)
    assert found.quiet and not found.proved
    assert [one.seen for one in found.problems()] == ["nothing moved on any rail in 10 s"]


def with_error(name: str, statistic: bool = False) -> Callable[[Sparks], None]:
    def change(sparks: Sparks) -> None:
        carry(sparks)
        port = sparks.port("spark2", 1)
        (port.statistics if statistic else port.counters)[name] = 3

    return change


@pytest.mark.parametrize(
    ("name", "statistic", "cause"),
    [
        ("out_of_sequence", False, "frames are lost on the way"),
        ("local_ack_timeout_err", False, "frames are lost on the way"),
        ("rnr_nak_retry_err", False, "the receiver was not ready"),
        ("rx_icrc_encapsulated", False, "frames arrive changed"),
        ("rx_crc_errors_phy", True, "bits are wrong on the cable"),
    ],
)
def test_R15_a_growing_error_names_the_rail_its_cable_and_the_cause(
    name: str, statistic: bool, cause: str
) -> None:
    def start(sparks: Sparks) -> None:
        port = sparks.port("spark2", 1)
        (port.statistics if statistic else port.counters)[name] = 0

    found = proof(with_error(name, statistic), start=start)
    bad = [one for one in found.rails if one.verdict == "errors"]
    assert [one.where for one in bad] == ["spark2 rocep1s0f1"] and not found.proved
    (problem,) = found.problems()
    assert problem.seen == f"{cause}, between here and spark1 port 0: {name} +3"


def test_errors_of_before_the_window_are_none() -> None:
    def start(sparks: Sparks) -> None:
        sparks.port("spark2", 1).counters["out_of_sequence"] = 900

    assert proof(carry, start=start).proved


def test_R16_an_overflow_is_told_from_loss_on_the_cable() -> None:
    def start(sparks: Sparks) -> None:
        sparks.port("spark2", 1).statistics["rx_out_of_buffer"] = 5

    def change(sparks: Sparks) -> None:
        carry(sparks)
        sparks.port("spark2", 1).statistics["rx_out_of_buffer"] = 8

    (problem,) = proof(change, start=start).problems()
    assert "hairpin queue" in problem.seen and "rx_out_of_buffer +3" in problem.seen


def test_counters_of_the_physical_port_count_once_for_both_functions() -> None:
    def start(sparks: Sparks) -> None:
        for half in (0, 1):
            sparks.port("spark2", 1, half).statistics["rx_crc_errors_phy"] = 0

    def change(sparks: Sparks) -> None:
        carry(sparks)
        for half in (0, 1):
            sparks.port("spark2", 1, half).statistics["rx_crc_errors_phy"] = 9

    assert [one.errors for one in proof(change, start=start).rails if one.errors] == [
        {"rx_crc_errors_phy": 9}
    ]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (10, 25, (15, False)),
        (0, 0, (0, False)),
        (2**32 - 10, 5, (15, False)),
        (2**64 - 10, 5, (15, False)),
        (50_000, 200, (200, True)),
        (2**40, 7, (7, True)),
        (2**32 - 1, 2**32 - 1, (None, False)),
        (2**32 - 100, 2**32 - 100, (0, False)),
    ],
)
def test_a_counter_that_passed_its_end_or_began_anew(
    before: int, after: int, wanted: tuple[int | None, bool]
) -> None:
    assert grown(before, after) == wanted


def test_counters_that_began_anew_are_a_lower_bound_and_say_so() -> None:
    def start(sparks: Sparks) -> None:
        sparks.port("spark1", 0).counters = {"port_xmit_data": 9 * GB, "port_rcv_data": 9 * GB}

    def change(sparks: Sparks) -> None:
        sparks.port("spark1", 0).counters = {}
        carry(sparks)

    one = proof(change, start=start).rails[0]
    assert (one.anew, one.sent, one.verdict) == (True, 10**9, "carries")


def soft(fabric: NodeFabric, packets: int) -> NodeFabric:
    """A node as soft-RoCE shows it: packets, and no bytes."""
    counters = {"sent_pkts": packets, "rcvd_pkts": packets, "send_err": 0}
    return replace(fabric, functions=tuple(
        replace(one, counters=counters if one.rdma else {}) for one in fabric.functions
    ))  # fmt: skip


def test_a_device_that_counts_packets_alone_is_judged_by_them() -> None:
    fabric = ring().fabric("spark1")
    names = {"spark1": DEVICES}
    found = prove(
        {"spark1": soft(fabric, 5)}, {"spark1": soft(fabric, 105)}, 1.0, ["spark1"], names
    )
    assert found.proved
    assert {(one.sent, one.packets_sent, one.share) for one in found.rails} == {(None, 100, 0.25)}


def test_a_node_that_could_not_be_looked_at_twice_is_no_proof() -> None:
    sparks = ring()
    before = {name: sparks.fabric(name) for name in NAMES}
    carry(sparks)
    after = {name: sparks.fabric(name) for name in NAMES[:3]}
    found = prove(before, after, 10.0, NAMES, dict.fromkeys(NAMES, DEVICES))
    assert found.unseen == ("spark4",) and not found.proved
    assert [one.where for one in found.problems()] == ["spark4"]
    assert {one.verdict for one in found.rails} == {"carries"}


def test_L29_a_device_that_a_node_does_not_have_is_named() -> None:
    found = proof(carry, ("rocep1s0f0", "rocep1s0f7"))
    assert found.missing[0] == ("spark1", "rocep1s0f7") and not found.proved
    problems = found.problems()
    assert [one.where for one in problems] == [f"{name} rocep1s0f7" for name in NAMES]


def test_transit_frames_are_counted_by_the_rules_and_the_cpu_is_named() -> None:
    def start(sparks: Sparks) -> None:
        sparks.port("spark2", 1).rules = [relay_rule(49152, "enp1s0f0np0", packets=10)]
        sparks.port("spark2", 0).rules = [relay_rule(49153, "enp1s0f1np1", packets=10)]

    def change(sparks: Sparks) -> None:
        carry(sparks)
        sparks.port("spark2", 1).rules = [relay_rule(49152, "enp1s0f0np0", packets=110)]
        (soft_rule,) = [relay_rule(49153, "enp1s0f1np1", packets=110)]
        soft_rule["options"]["actions"][0]["stats"]["hw_packets"] = 10
        sparks.port("spark2", 0).rules = [soft_rule]

    found = proof(change, start=start)
    assert [(one.preference, one.packets, one.hardware) for one in found.transits] == [
        *((49153, 100, 0), (49152, 100, 100))
    ]
    (problem,) = found.problems()
    assert problem.where == "spark2 enp1s0f0np0 rule 49153"
    assert problem.seen == "100 of 100 frames went by the CPU" and not found.proved


def test_a_proof_as_json_has_rails_and_problems() -> None:
    value = proof(with_error("out_of_sequence"), start=lambda s: None).as_dict()
    assert value["proved"] is False and len(value["rails"]) == 16
    assert value["problems"][0]["where"] == "spark2 rocep1s0f1"
