"""`qualify lanes` on four nodes of the VM: what it reports, and what it refuses."""

import json
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from tests.rdma.network import SWITCH, choice, down, up
from tetraspark.cli.main import run

DEVICES = [",".join(str(choice(SWITCH, f"n{node}r{rail}")) for rail in (0, 1)) for node in range(4)]


def node(rank: int, folder: Path, port: int) -> None:
    """Run the command as one node, its output in a file."""
    # Forked, so that torch need not be imported again.
    output = os.open(folder / f"out-{rank}", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    words = f"qualify lanes --rank {rank} --world 4 --meet 127.0.0.1:{port} --node node{rank}"
    sys.argv = ["tetraspark", *words.split(), "--devices", DEVICES[rank], "--rounds", "10"]
    if rank == 1:
        sys.argv.append("--json")
    run()


def everywhere(folder: Path, port: int) -> tuple[list[int | None], list[str]]:
    fork = multiprocessing.get_context("fork")
    nodes = [fork.Process(target=node, args=(rank, folder, port)) for rank in range(4)]
    for one in nodes:
        one.start()
    for one in nodes:
        one.join(240)
    return [one.exitcode for one in nodes], [
        (folder / f"out-{rank}").read_text() for rank in range(4)
    ]


def test_a_whole_fabric(tmp_path: Path) -> None:
    statuses, outputs = everywhere(tmp_path, 20100)
    print(outputs[0])
    assert statuses == [0] * 4, outputs
    found = json.loads(outputs[1])
    assert [lane["devices"] for lane in found["lanes"]] == [
        [f"n{rank}r{rail}" for rank in range(4)] for rail in (0, 1)
    ]
    assert all(lane["small_us"] > 0 and lane["gigabytes_per_s"] > 0 for lane in found["lanes"])
    assert "n3r1" in outputs[0] and "10.10.1.4" in outputs[0] and "not on PCI" in outputs[0]


@pytest.mark.parametrize("port", ["n2r0"])
def test_a_port_that_is_down_is_named_on_every_node(tmp_path: Path, port: str) -> None:
    down(port)
    try:
        statuses, outputs = everywhere(tmp_path, 20101)
    finally:
        up(SWITCH, port)
    assert statuses == [1] * 4
    for output in outputs:
        text = " ".join(output.split())
        assert "node node2, device n2r0 seen: port 1 is DOWN" in text
        assert "wanted: state ACTIVE fix: rdma link show" in text
        assert "Traceback" not in text
