"""NCCL's own words: what they tell, and what they leave open."""

from pathlib import Path

import pytest

from tetraspark.fabric.nccl_log import NcclLog, nccl_causes, read_nccl
from tetraspark.fleet.cause import first_cause

LOGS = Path(__file__).parents[1] / "line" / "logs" / "engine"
WARN = "spark1:88:120 [0] transport/net_ib.cc:1 NCCL WARN "


def lines(name: str) -> list[str]:
    return (LOGS / name).read_text().splitlines()


def test_a_rank_on_rdma() -> None:
    assert read_nccl(lines("nccl-ib.log")) == NcclLog(
        version="2.30.7",
        network="IB",
        devices=("rocep1s0f0:1", "roceP2p1s0f0:1"),
        transports=frozenset({"NET/IB"}),
    )
    assert read_nccl(lines("nccl-ib.log")).uses_sockets is False


def test_a_rank_on_sockets() -> None:
    found = read_nccl(lines("nccl-socket.log"))
    assert (found.network, found.uses_sockets) == ("Socket", True)


def test_a_log_that_says_nothing_proves_nothing() -> None:
    assert read_nccl(["NCCL version 2.30.7+cuda13.0"]).uses_sockets is None
    assert read_nccl(["[TP0] sglang is using nccl==2.28.3"]).version == "2.28.3"


def test_one_communicator_on_sockets_is_enough() -> None:
    words = ["NCCL INFO Using network Socket", "NCCL INFO Using network IB"]
    assert read_nccl(words).uses_sockets is True
    mixed = [*lines("nccl-ib.log"), "NCCL INFO Channel 00 : 1[0] -> 2[0] [send] via NET/Socket/0"]
    assert read_nccl(mixed).uses_sockets is True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "NET/IB : Got completion from peer 10.0.22.2<47322> with status=12 opcode=0 len=0 "
            "vendor err 129",
            "peer does not answer",
        ),
        (
            "NET/IB: Got completion from peer 10.0.22.2<47322> with "
            "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129",
            "peer does not answer",
        ),
        (
            "Call to ibv_modify_qp failed with error Network is unreachable",
            "GID of another network",
        ),
        ("Call to ibv_modify_qp failed with error No data available", "empty GID"),
        ("Call to ibv_modify_qp failed with 61 No data available, on dev x:1", "empty GID"),
        (
            "Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1",
            "nobody at the other end",
        ),
        ("Error: network IB not found.", "no RDMA for NCCL"),
    ],
)
def test_L34_each_error_text_has_a_cause_and_a_next_command(text: str, name: str) -> None:
    found = first_cause(nccl_causes("switch"), WARN + text)
    assert found is not None
    assert found.name == name
    assert found.cause
    assert "{" not in found.fix.format(node="spark1", rank=0).replace("{{.Config.Env}}", "")


def test_L34_another_status_has_no_cause() -> None:
    text = "Got completion from peer 10.0.22.2<47322> with status=5 opcode=0 len=0 vendor err 244"
    assert first_cause(nccl_causes("switch"), WARN + text) is None


def test_L35_trees_right_after_the_rings_are_told_on_a_ring_alone() -> None:
    text = "\n".join(lines("eager-tree.log"))
    ring = first_cause(nccl_causes("ring"), text)
    switch = first_cause(nccl_causes("switch"), text)
    assert ring is not None
    assert switch is not None
    assert ring.name == "trees on a ring"
    assert "NCCL_CUMEM_ENABLE=1" in ring.fix
    assert switch.name == "nobody at the other end"


def test_L36_two_libraries_are_told_whatever_joins_their_paths() -> None:
    for joint in ("vs", "and"):
        text = f"AssertionError: Duplicate NCCL runtime found: /nccl/a.so {joint} /opt/b.so"
        found = first_cause(nccl_causes("ring"), text)
        assert found is not None
        assert found.name == "two NCCL libraries"


def test_L39_registration_without_memory_names_the_kernel() -> None:
    text = WARN + "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
    found = first_cause(nccl_causes("switch"), text)
    assert found is not None
    assert "CmaTotal" in found.cause
    assert "kho=off" in found.fix


def test_L08_an_interface_of_another_node_is_told_in_gloos_words() -> None:
    text = "[E gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: enp1s0"
    found = first_cause(nccl_causes("switch"), text)
    assert found is not None
    assert found.name == "no such interface"
