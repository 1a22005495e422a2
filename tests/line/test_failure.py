from pathlib import Path

from tetraspark.errors import Problem
from tetraspark.fleet.rank import Exit, RankState
from tetraspark.line.engine_log import Line, parse
from tetraspark.line.failure import first_failure

LOGS = Path(__file__).parent / "logs" / "killed_rank"


def killed_rank() -> list[Line]:
    return [
        line
        for rank in range(4)
        for line in parse(rank, (LOGS / f"rank{rank}.log").read_text().splitlines())
    ]


def exited(rank: int, code: int, at: float) -> RankState:
    return RankState(rank, "exited", (), Exit(code, at))


def running(rank: int) -> RankState:
    return RankState(rank, "running", (rank + 1,))


def test_a_killed_scheduler_is_named_though_all_ranks_died() -> None:
    """Recorded from a real line after `kill -9` of rank 2's scheduler."""
    lines = killed_rank()
    states = [exited(0, 137, 4.0), exited(1, 137, 2.0), exited(2, 0, 3.0), exited(3, 137, 2.0)]
    failure = first_failure(lines, states, {})
    assert failure is not None
    assert failure.rank == 2
    assert failure.text.endswith("terminated with -9")


def test_a_rank_killed_without_a_word_comes_before_those_who_lost_it() -> None:
    lines = [line for line in killed_rank() if line.rank != 2]
    states = [running(0), exited(1, 137, 20.0), exited(2, 137, 10.0), running(3)]
    failure = first_failure(lines, states, {})
    assert failure is not None
    assert (failure.rank, failure.text) == (2, "engine ended: killed by signal 9")


def test_the_earliest_own_words_win() -> None:
    lines = [
        *parse(0, ["[2026-11-30 08:00:05] x", "ValueError: late"]),
        *parse(1, ["[2026-11-30 08:00:01] x", "ValueError: early", "KeyError: its own collapse"]),
    ]
    ended = lines[0].time + 1
    failure = first_failure(lines, [exited(0, 1, ended), exited(1, 1, ended)], {})
    assert failure is not None
    assert (failure.rank, failure.text) == (1, "ValueError: early")


def test_a_frozen_rank_explains_the_timeouts_of_the_others() -> None:
    lines = parse(0, ["RuntimeError: Timed out waiting 1800000ms for recv operation to complete"])
    failure = first_failure(lines, [running(0), RankState(1, "frozen", (9,))], {})
    assert failure is not None
    assert (failure.rank, "SIGSTOP" in failure.text) == (1, True)


def test_a_broken_rank_comes_before_a_lost_peer_and_an_exit_code() -> None:
    lines = parse(0, ["BrokenPipeError: [Errno 32] Broken pipe"])
    states = [exited(0, 1, 1.0), running(1), exited(2, 1, 1.0)]
    failure = first_failure(lines, states, {1: "scheduler process 12 is gone"})
    assert failure is not None
    assert (failure.rank, failure.text) == (1, "scheduler process 12 is gone")


def test_a_rank_that_vanished_with_its_supervisor_is_named() -> None:
    lines = [line for line in killed_rank() if line.rank != 2]
    states = [running(0), exited(1, 137, 2.0), RankState(2, "absent"), running(3)]
    failure = first_failure(lines, states, {})
    assert failure is not None
    assert (failure.rank, failure.text) == (2, "it is gone and left no exit record")


def test_an_exit_code_comes_before_a_clean_exit() -> None:
    failure = first_failure([], [exited(0, 0, 1.0), exited(1, 3, 2.0)], {})
    assert failure is not None
    assert (failure.rank, failure.text) == (1, "engine ended: exit code 3")


def test_an_exception_that_was_survived_is_not_to_blame_later() -> None:
    lines = [
        *parse(0, ["[2026-11-30 08:00:00] x", "RuntimeError: unexpected disconnect"]),
        *parse(0, ["[2026-11-30 09:00:00] Received sigquit from a child process."]),
        *parse(1, ["[2026-11-30 09:00:00] Scheduler 77 terminated with -9"]),
    ]
    for states in ([running(0), running(1)], [exited(0, 137, 0.0), exited(1, 0, 0.0)]):
        failure = first_failure(lines, states, {1: "scheduler process 77 is gone"})
        assert failure is not None
        assert (failure.rank, failure.text.endswith("with -9")) == (1, True)


def test_words_before_any_time_stamp_count() -> None:
    lines = parse(0, ["sglang serve: error: unrecognized arguments: --bogus"])
    failure = first_failure(lines, [exited(0, 2, 1796000000.0)], {})
    assert failure is not None
    assert "--bogus" in failure.text


def test_the_end_of_a_pipe_says_nothing() -> None:
    died = "[2026-11-30 08:00:01] Rank 0 scheduler died during initialization (exit code: -9)."
    lines = parse(1, ["[2026-11-30 08:00:00] x", "EOFError", died])
    failure = first_failure(lines, [exited(1, 1, lines[0].time)], {})
    assert failure is not None
    assert "exit code: -9" in failure.text


def test_nothing_failed() -> None:
    assert first_failure(parse(0, ["[2026-11-30 08:00:05] fine"]), [running(0)], {}) is None


def test_a_node_out_of_reach_comes_before_those_who_lost_it_and_after_a_cause() -> None:
    problem = Problem("spark2 (ssh spark2)", "ssh failed: timed out", "an answer")
    silent = RankState(1, "unreachable", problem=problem)
    lost = parse(0, ["RuntimeError: Connection closed by peer"])
    failure = first_failure(lost, [exited(0, 1, 1.0), silent], {})
    assert failure is not None
    assert (failure.rank, failure.text) == (1, "ssh failed: timed out")
    cause = parse(0, ["ValueError: too many tokens"])
    failure = first_failure(cause, [exited(0, 1, 1.0), silent], {})
    assert failure is not None
    assert (failure.rank, failure.text) == (0, "ValueError: too many tokens")


ROOT = "frozen: rank 2, seen by rank 1 at sequence 7 (64 bytes): its process is stopped"


def survivor(rank: int, second: int, root: str = ROOT) -> list[Line]:
    """What a rank logs of a failed group."""
    said = f"tetraspark.collectives.failure.CollectiveError: collective failed on rank {rank}"
    return parse(
        rank,
        [
            f"[2026-11-30 08:00:{second:02} TP{rank}] Scheduler hit an exception: Traceback (most",
            '  File "supervisor.py", line 101, in check',
            "    raise CollectiveError(self.root, self._rank)",
            f"{said}; root cause: {root}",
        ],
    )


def test_a_rank_that_was_frozen_for_a_while_is_named_by_those_who_lost_it() -> None:
    """As survivors write it: SIGSTOP to rank 2, and SIGCONT when the others had given up."""
    lines = [*survivor(1, 1), *survivor(0, 2), *survivor(3, 2), *survivor(2, 20)]
    end = lines[-1].time
    states = [exited(0, 137, end), exited(1, 137, end), exited(2, 1, end), exited(3, 0, end)]
    for rest in (states, [running(0), exited(1, 137, end), running(2), exited(3, 137, end)]):
        failure = first_failure(lines, rest, {})
        assert failure is not None
        assert (failure.rank, failure.text) == (2, ROOT)


def test_the_source_of_a_traceback_is_no_cause() -> None:
    texts = ["    raise CollectiveError(self.root, self._rank)", "    ValueError: x", "\tError: y"]
    assert not [line for line in parse(1, texts) if line.fatal]


def test_the_named_rank_is_explained_by_its_own_words_and_by_its_signal() -> None:
    root = "dead: rank 2, seen by rank 1 at sequence 7 (64 bytes): its process has ended"
    lines = [*survivor(1, 3, root), *survivor(0, 3, root)]
    end = lines[-1].time
    # Rank 3 was ended in the collapse, and said nothing.
    states = [exited(0, 1, end), exited(1, 1, end), exited(2, 137, end), exited(3, 137, end - 1)]
    failure = first_failure(lines, states, {})
    assert failure is not None
    assert (failure.rank, failure.text) == (2, "engine ended: killed by signal 9")
    words = parse(2, ["[2026-11-30 08:00:02] x", "ValueError: too many tokens"])
    failure = first_failure([*lines, *words], states, {})
    assert failure is not None
    assert (failure.rank, failure.text) == (2, "ValueError: too many tokens")


def test_a_root_that_was_survived_long_ago_is_not_to_blame() -> None:
    lines = [*survivor(0, 1), *parse(0, ["[2026-11-30 09:00:00] x"])]
    failure = first_failure(lines, [exited(0, 3, lines[-1].time), running(2)], {})
    assert failure is not None
    assert (failure.rank, failure.text) == (0, "engine ended: exit code 3")
