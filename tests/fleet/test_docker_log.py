"""The log of a container, read bit by bit: each line once, whatever is asked for again."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tetraspark.fleet.docker_log import PART_BYTES, Position, fresh, parse

# Nanoseconds since 2026-11-30, in steps that make equal stamps and gaps beyond the overlap.
STEPS = st.lists(st.sampled_from([0, 1, 500_000_000, 1_000_000_000, 3_000_000_000]), max_size=25)


def stamp(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(1796000000 + nanoseconds // 10**9, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds % 10**9:09d}Z"


def printed(lines: list[tuple[int, str]], since: str) -> str:
    """Return what `docker logs --timestamps --since` prints: inclusive."""
    seconds, _, fraction = since.partition(".")
    begin = int(seconds) * 10**9 + int(fraction) - 1796000000 * 10**9 if since else 0
    return "".join(f"{stamp(at)} {text}\n" for at, text in lines if at >= begin)


@given(steps=STEPS, cuts=st.lists(st.integers(0, 25), max_size=6))
def test_every_line_is_copied_once_in_order(steps: list[int], cuts: list[int]) -> None:
    at, lines = 0, []
    for step in steps:
        at += step
        lines.append((at, "same"))  # Texts do not tell lines apart.
    position, copied = Position(), []
    for cut in [*sorted(cuts), len(lines), len(lines)]:
        found, position = fresh(parse(printed(lines[:cut], position.since)), position)
        copied += found
    assert [entry.at - 1796000000 * 10**9 for entry in copied] == [at for at, _ in lines]


def test_a_line_that_came_late_into_the_log_is_not_lost() -> None:
    first, position = fresh(parse(printed([(5, "stderr"), (9, "stdout")], "")), Position())
    late = printed([(5, "stderr"), (7, "stderr, late"), (9, "stdout")], position.since)
    found, _ = fresh(parse(late), position)
    assert [entry.text for entry in first] == ["stderr", "stdout"]
    assert [entry.text for entry in found] == ["stderr, late"]


def test_what_docker_itself_says_is_no_line_and_empty_lines_are() -> None:
    text = f"Error: No such container: x\n{stamp(1)} \n{stamp(2)} a\r\n"
    assert [entry.text for entry in parse(text)] == ["", "a"]


def test_a_long_line_that_docker_keeps_in_parts_is_one_again() -> None:
    half, rest = "x" * PART_BYTES, "y" * 100
    (entry,) = parse(f"{stamp(3)} {half}{stamp(3)} {rest}\n")
    assert entry.text == half + rest
