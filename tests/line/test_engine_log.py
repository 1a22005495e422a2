from pathlib import Path

import pytest

from tetraspark.line.engine_log import Line, Stage, parse, read_receipt, timestamp

LOGS = Path(__file__).parent / "logs" / "killed_rank"


def one(text: str) -> Line:
    (line,) = parse(0, [text])
    return line


def test_stages_of_a_real_start_come_in_order() -> None:
    for rank in range(4):
        lines = parse(rank, (LOGS / f"rank{rank}.log").read_text().splitlines())
        stages = [line.stage for line in lines if line.stage is not None]
        assert stages == sorted(stages)
        assert set(Stage) - set(stages) == {Stage.STARTED}


def test_receipts_of_a_real_start() -> None:
    lines = parse(2, (LOGS / "rank2.log").read_text().splitlines())
    receipts = [line.receipt for line in lines if line.receipt]
    assert [receipt["tetraspark"] for receipt in receipts] == ["engine", "tp_all_reduce"]
    assert {receipt["rank"] for receipt in receipts} == {2}


def test_a_line_without_a_time_has_the_time_of_the_one_before() -> None:
    first, second = parse(0, ["[2026-11-30 07:59:14 TP2] x", "Killed"])
    assert first.time == second.time == timestamp("[2026-11-30 07:59:14] y")


def test_blank_lines_are_passed_over_and_time_goes_on_from_before() -> None:
    assert parse(0, ["", "  "]) == []
    assert parse(0, ["word"], since=7.0)[0].time == 7.0


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: max_total_tokens is too small",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "[2026-11-30 07:59:14] Scheduler or DataParallelController 7565 terminated with -9",
        "SystemExit",
        "Segmentation fault (core dumped)",
        "AssertionError",
        "sglang serve: error: unrecognized arguments: --bogus-flag 7",
        "[2026-11-30 09:44:43] ERROR:    [Errno 98] error while attempting to bind on address",
        "Rank 0 scheduler died during initialization (exit code: -9). Possible OOM",
        '{"tetraspark": "refused", "pid": 1, "reasons": ["drift"]}',
    ],
)
def test_own_fatal_lines(text: str) -> None:
    assert (one(text).fatal, one(text).peer_lost) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1",
        "torch.distributed.DistStoreError: Timed out after 601 seconds, 1/4 clients joined.",
        "[2026-11-30 07:59:15] Received sigquit from a child process. It usually means a failure",
        "BrokenPipeError: [Errno 32] Broken pipe",
    ],
)
def test_lines_about_a_lost_peer_are_fatal_but_no_cause(text: str) -> None:
    assert (one(text).fatal, one(text).peer_lost) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        "[2026-11-30 07:59:11] server_args={'custom_sigquit_handler': None}",
        "[2026-11-30 07:59:15] Scheduler or DataParallelController 3877 terminated with 0",
        "[2026-11-30 07:59:09 TP0] Ignore import error when loading x: No module named 'cutlass'",
        '{"tetraspark": "engine", "pid": 1, "rank": 0}',
        "the word Error: in the middle of ValueError text",
        "Terminated",
        "EOFError",
        "[2026-11-30 07:59:15] a word of the user's: an error: not ours",
    ],
)
def test_lines_that_are_not_fatal(text: str) -> None:
    assert not one(text).fatal


@pytest.mark.parametrize("text", ['{"tetraspark": "engine", ', "tetraspark", '{"other": 1}', "[]"])
def test_what_is_no_receipt(text: str) -> None:
    assert read_receipt(text) is None
