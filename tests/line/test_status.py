"""What `status` says of a line that this machine has no run of."""

from tetraspark.errors import Problem
from tetraspark.fleet.runner import Part, Present
from tetraspark.line.status import judge_without_run

GONE = Problem("spark2 (ssh spark2)", "ssh failed: refused", "an ssh server", "ping spark2")


def test_nothing_anywhere_is_down() -> None:
    assert judge_without_run(Present(())) == ("down", "never served")


def test_a_line_that_another_machine_started_is_not_called_down() -> None:
    living = Part("20261130-160000", 1, "tetraspark-four-r1")
    verdict, reason = judge_without_run(Present((living,)))
    assert verdict == "unknown"
    assert "never served from this machine, and run 20261130-160000 lives" in reason


def test_nodes_that_were_not_asked_are_named() -> None:
    verdict, reason = judge_without_run(Present((), (GONE,)))
    assert verdict == "unknown"
    assert "not all nodes could be asked: spark2 (ssh spark2)" in reason
