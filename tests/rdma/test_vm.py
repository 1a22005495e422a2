"""Boots the VM and runs the checks in it: one boot a network, each check a test of its own."""

import os
import sys

import pytest

from tests.collectives.cuda_emulator import build_emulator
from tests.rdma.kernels import LIBRARY
from tests.rdma.vm.machine import missing, run
from tetraspark.collectives.library import proxy
from tetraspark.collectives.verbs_native import verbs

LIMIT_S = 1200
CHECKS = {
    # The large groups first: faults restore only the four nodes that they know.
    "switch 8 4": (
        "check_worlds.py",
        "check_bits.py",
        "check_kernels.py",
        "check_communicator.py",
        "check_faults.py",
        "check_failover.py",
        "check_events.py",
        "check_fabric.py",
        "check_qualify.py",
    ),
    "ring 4 2": ("check_ring.py", "check_communicator.py"),
}


@pytest.mark.rdma
@pytest.mark.parametrize("topology", CHECKS)
def test_in_the_vm(topology: str) -> None:
    lacking = missing()
    if lacking and not os.environ.get("CI"):
        pytest.skip(f"no VM here: apt-get install {' '.join(lacking)}")
    assert not lacking, f"CI must have {lacking}: .ci/run installs them"
    # Built here, found there: a compiler under emulation takes minutes.
    proxy(), verbs()
    LIBRARY.parent.mkdir(exist_ok=True)
    build_emulator(4, LIBRARY.parent)
    files = " ".join(f"tests/rdma/checks/{file}" for file in CHECKS[topology])
    flags = "-q -s -p no:cacheprovider --durations=0"
    done = run(topology, f"{sys.executable} -m pytest {flags} {files}", LIMIT_S)
    print(done.output)
    assert done.status == 0, done.output
