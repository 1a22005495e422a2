"""What the ranks of a measurement get from whoever starts them."""

import sys

import pytest

from tetraspark.measure.rank_processes import RankProcesses

PROGRAM = """
import json, os, pathlib, sys
folder, rank = pathlib.Path(sys.argv[1]), sys.argv[2]
names = ("NCCL_P2P_DISABLE", "NCCL_ALGO", "OMP_NUM_THREADS")
found = {name: os.environ.get(name) for name in names}
(folder / f"result-{rank}.json").write_text(json.dumps(found))
"""
COMMAND = (sys.executable, "-c", PROGRAM)


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setenv("NCCL_ALGO", "Ring")


def test_a_rival_is_as_the_shell_makes_it() -> None:
    wanted = {"NCCL_P2P_DISABLE": "1", "NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "1"}
    assert RankProcesses(2, COMMAND, "nccl").run({}) == [wanted] * 2


def test_a_start_may_leave_a_variable_out() -> None:
    (found,) = RankProcesses(1, COMMAND, "nccl", {"NCCL_P2P_DISABLE": None}).run({})
    assert (found["NCCL_P2P_DISABLE"], found["NCCL_ALGO"]) == (None, "Ring")
