from pathlib import Path

import pytest

from tetraspark.fleet.run_files import TIME, log_path, read_log, times_path
from tetraspark.line import log_tail
from tetraspark.line.log_tail import HEAD_BYTES, TAIL_BYTES, LogTail

RECEIPT = '{"tetraspark": "engine", "pid": 7, "rank": 0}\n'
FATAL = "[2026-11-30 09:00:00] Scheduler 77 terminated with -9\n"


@pytest.fixture
def handed_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of a log that were read, read by read."""
    counted: list[int] = []

    def counting(run_dir: Path, rank: int, offset: int, size: int = -1) -> bytes:
        data = read_log(run_dir, rank, offset, size)
        counted.append(len(data))
        return data

    monkeypatch.setattr(log_tail, "read_log", counting)
    return counted


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    filler = "".join(f"[2026-11-30 08:{n // 60 % 60:02}:{n % 60:02}] line {n}\n" for n in range(9))
    with log_path(tmp_path, 0).open("w") as log:
        log.write(RECEIPT)
        for _ in range(20_000_000 // len(filler)):
            log.write(filler)
        log.write(FATAL)
    return tmp_path


def test_the_ends_of_a_long_log_are_enough_and_are_all_that_is_read(
    long_log: Path, handed_out: list[int]
) -> None:
    tail = LogTail(long_log, 1)
    tail.read_ends()
    assert [line.text for line in tail.lines] == [RECEIPT.strip(), FATAL.strip()]
    last = tail.last(0)
    assert last is not None
    assert last.text == FATAL.strip()
    assert sum(handed_out) < 2 * HEAD_BYTES + 2 * TAIL_BYTES


def test_the_last_lines_of_a_long_log_and_then_what_comes(
    long_log: Path, handed_out: list[int]
) -> None:
    tail = LogTail(long_log, 1)
    assert [line.text[-6:] for line in tail.skip_to_last(0, 3)] == ["line 7", "line 8", "ith -9"]
    assert sum(handed_out) < HEAD_BYTES
    with log_path(long_log, 0).open("a") as log:
        log.write("new\nhalf a li")
    assert [line.text for line in tail.read()] == ["new"]
    with log_path(long_log, 0).open("a") as log:
        log.write("ne\n")
    assert [line.text for line in tail.read()] == ["half a line"]


@pytest.mark.parametrize(("wanted", "found"), [(0, 0), (2, 2), (50, 3)])
def test_a_short_log_has_no_more_lines_than_it_has(tmp_path: Path, wanted: int, found: int) -> None:
    log_path(tmp_path, 0).write_text("a\nb\nc\n")
    assert len(LogTail(tmp_path, 1).skip_to_last(0, wanted)) == found


def test_a_rank_without_a_log_has_said_nothing(tmp_path: Path) -> None:
    tail = LogTail(tmp_path, 2)
    tail.read_ends()
    assert tail.lines == []
    assert tail.last(1) is None
    assert tail.skip_to_last(0, 5) == []


def test_source_lines_of_warnings_are_no_news(tmp_path: Path) -> None:
    log_path(tmp_path, 0).write_text("site.py:3: FutureWarning: old\n  warnings.warn(\n")
    tail = LogTail(tmp_path, 1)
    tail.read()
    last = tail.last(0)
    assert last is not None
    assert last.text == "site.py:3: FutureWarning: old"


def test_a_progress_bar_is_many_lines_and_the_next_line_keeps_its_time(tmp_path: Path) -> None:
    log_path(tmp_path, 0).write_bytes(b"10%\r50%\r100%\nnext\n")
    times_path(tmp_path, 0).write_bytes(TIME.pack(0, 5.0) + TIME.pack(13, 6.0))
    lines = LogTail(tmp_path, 1).read()
    assert [(line.text, line.time) for line in lines] == [
        ("10%", 5.0),
        ("50%", 5.0),
        ("100%", 5.0),
        ("next", 6.0),
    ]
