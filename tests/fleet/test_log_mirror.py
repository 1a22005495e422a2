"""The copy of a container's log: whole whatever kills the program that makes it."""

from pathlib import Path

import pytest

from tests.fleet.test_docker_log import stamp
from tetraspark.errors import RunError
from tetraspark.fleet.clock import Clock, exchange
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.log_mirror import ANEW, CUT, LogMirror
from tetraspark.fleet.rank import Exit, RankState
from tetraspark.fleet.run_files import (
    TIME,
    exit_path,
    line_times,
    log_path,
    read_exit,
    record_exit,
    times_path,
)
from tetraspark.line.failure import detail, first_failure
from tetraspark.line.log_tail import LogTail

EXACT = Clock(0.0, 0.0)


def text(*lines: tuple[int, str]) -> str:
    return "".join(f"{stamp(at)} {line}\n" for at, line in lines)


def test_copies_add_up_and_are_asked_for_from_where_they_end(tmp_path: Path) -> None:
    mirror = LogMirror(tmp_path, 0)
    assert mirror.since == ""
    mirror.add(text((0, "one"), (2_500_000_000, "two")), False, EXACT)
    assert mirror.since == "1796000001.500000000"
    LogMirror(tmp_path, 0).add(text((2_500_000_000, "two"), (2_500_000_000, "tre")), False, EXACT)
    assert log_path(tmp_path, 0).read_text() == "one\ntwo\ntre\n"


def test_what_a_killed_program_left_behind_does_not_count(tmp_path: Path) -> None:
    LogMirror(tmp_path, 0).add(text((0, "one")), False, EXACT)
    with log_path(tmp_path, 0).open("a") as log, times_path(tmp_path, 0).open("ab") as times:
        log.write("two\nhalf a l")
        times.write(TIME.pack(4, 1.0))
    LogMirror(tmp_path, 0).add(text((0, "one"), (1, "two"), (2, "three")), False, EXACT)
    assert log_path(tmp_path, 0).read_text() == "one\ntwo\nthree\n"
    assert list(line_times(tmp_path, 0, 0, 100)) == [0, 4, 8]


def test_lines_that_are_left_out_are_told(tmp_path: Path) -> None:
    LogMirror(tmp_path, 0).add(text((0, "one")), False, EXACT)
    LogMirror(tmp_path, 0).add(text((9_000_000_000, "last")), True, EXACT)
    assert log_path(tmp_path, 0).read_text() == f"one\n{CUT}\nlast\n"


def test_times_of_a_part_of_the_log(tmp_path: Path) -> None:
    LogMirror(tmp_path, 0).add(text(*((n * 10**9, "abc") for n in range(50))), False, EXACT)
    assert line_times(tmp_path, 0, 8, 20) == {8: 1796000002.0, 12: 1796000003.0, 16: 1796000004.0}
    assert line_times(tmp_path, 0, 200, 300) == {}
    assert line_times(tmp_path, 1, 0, 300) == {}


@pytest.mark.parametrize("ahead", [-1.0, 0.0, 1.0])
def test_the_headline_is_the_earliest_line_whatever_the_nodes_clocks_say(
    tmp_path: Path, ahead: float
) -> None:
    """Rank 1 fails first, rank 0 half a second later; rank 1's node has another clock."""
    clock = exchange(100.0, 100.0 - ahead, 100.001 - ahead, 100.001)
    begin = round(-ahead * 10**9) + 5 * 10**9
    LogMirror(tmp_path, 1).add(text((begin, "ValueError: the cause")), False, clock)
    LogMirror(tmp_path, 0).add(text((5_500_000_000, "ValueError: later")), False, EXACT)
    tail = LogTail(tmp_path, 2)
    tail.read()
    ended = [RankState(rank, "exited", (), Exit(1, 1796000006.0)) for rank in range(2)]
    failure = first_failure(tail.lines, ended, {})
    assert failure is not None
    assert (failure.rank, failure.text) == (1, "ValueError: the cause")
    assert failure.time == pytest.approx(1796000005.0, abs=0.01)


def test_a_clock_is_known_better_with_each_exchange_until_it_is_set() -> None:
    first = exchange(10.0, 15.2, 15.3, 10.4)
    assert first.low == pytest.approx(-5.2)
    assert first.ahead == pytest.approx(-4.9)
    second = first.and_then(exchange(20.0, 25.06, 25.1, 20.11))
    assert second.ahead == pytest.approx(-4.99)
    assert second.and_then(exchange(30.0, 35.5, 35.6, 31.0)) == Clock(second.low, second.high)
    assert second.and_then(exchange(40.0, 40.0, 40.0, 40.0)) == Clock(0.0, 0.0)


@pytest.mark.parametrize("damage", ["", "{", "[" * 100_000, '{"size": -1}', "\x00"])
def test_with_a_damaged_cursor_all_is_copied_anew_and_nothing_is_lost(
    tmp_path: Path, damage: str
) -> None:
    LogMirror(tmp_path, 0).add(text((0, "one"), (1, "two")), False, EXACT)
    (tmp_path / "rank0.cursor").write_text(damage)
    mirror = LogMirror(tmp_path, 0)
    assert mirror.since == ""
    mirror.add(text((0, "one"), (1, "two"), (2, "three")), False, EXACT)
    told = ANEW.format("rank0.log.damaged-1")
    assert log_path(tmp_path, 0).read_text() == f"{told}\none\ntwo\nthree\n"
    assert (tmp_path / "rank0.log.damaged-1").read_text() == "one\ntwo\n"
    assert (tmp_path / "rank0.cursor.damaged-1").read_text() == damage
    LogMirror(tmp_path, 0).add(text((2, "three"), (3, "four")), False, EXACT)
    assert log_path(tmp_path, 0).read_text().endswith("two\nthree\nfour\n")


@pytest.mark.parametrize(
    "damage", [b"", b"137", b"137 soon", b"x 1.0", b"1 nan", b"999 1.0", b"\xff\x00 1", b"9" * 5000]
)
def test_a_damaged_end_of_a_rank_is_told_and_set_aside_by_a_new_one(
    tmp_path: Path, damage: bytes
) -> None:
    path = exit_path(tmp_path, 0)
    path.write_bytes(damage)
    with pytest.raises(RunError, match=r"rank0\.exit: damaged"):
        read_exit(tmp_path, 0)
    (state,) = LocalRunner().inspect(tmp_path, ["node0"])
    assert (state.state, state.exit) == ("exited", None)
    assert state.problem is not None and detail(state).startswith("damaged: ")
    failure = first_failure([], [state], {})
    assert failure is not None and failure.text.startswith("damaged: ")
    record_exit(tmp_path, 0, Exit(137, 1.0))
    assert read_exit(tmp_path, 0) == Exit(137, 1.0)
    assert (tmp_path / "rank0.exit.damaged-1").read_bytes() == damage
