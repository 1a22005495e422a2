"""The rules by which a decode cell is believed, on traces and on servers that break them."""

from dataclasses import replace

import pytest

from tests.measure.synthetic import Script, serving
from tetraspark.measure.decode import DEFAULT, Cell, judge, measure_decode, together
from tetraspark.measure.prompts import KINDS, prompt
from tetraspark.measure.stream import GREEDY, Piece, Sampling, Trace, ask
from tetraspark.measure.window import common_window, faults, peak_running

pytestmark = pytest.mark.timed


def trace(begin: float, rate: float, tokens: int, counted: bool = True, a_piece: int = 1) -> Trace:
    """A stream whose first piece comes at `begin`, with `rate` tokens a second."""
    counts = range(a_piece, tokens + 1, a_piece)
    pieces = tuple(
        Piece(begin + (count - a_piece) / rate, "x" * a_piece, count if counted else None)
        for count in counts
    )
    return Trace(begin - 0.1, pieces[-1].at, pieces, "length", 10, tokens, 0)


def test_the_window_is_where_all_decode_and_counts_only_what_came_in_it() -> None:
    streams = [trace(0.0, 10, 101), trace(2.0, 10, 101)]
    window = common_window(streams)
    assert window is not None
    assert window.seconds == pytest.approx(8.0)
    assert window.tokens == pytest.approx(160)
    assert window.rate == pytest.approx(20)


@pytest.mark.parametrize("counted", [True, False])
def test_pieces_of_several_tokens_are_not_counted_as_one(counted: bool) -> None:
    """Speculative decoding sends several tokens a piece."""
    window = common_window([trace(0.0, 10, 100, counted, a_piece=5)] * 2)
    assert window is not None
    assert window.rate == pytest.approx(20)


def test_streams_one_after_the_other_have_no_window() -> None:
    streams = [trace(0.0, 10, 20), trace(5.0, 10, 20)]
    assert common_window(streams) is None
    assert peak_running(streams) == 1
    assert faults(streams, 2) == [
        "at most 1 of 2 requests ran at once",
        "no moment in which all requests decoded",
    ]


def test_a_short_overlap_is_told() -> None:
    (fault,) = faults([trace(0.0, 10, 101), trace(9.0, 10, 101)], 2)
    assert fault == "all requests decoded together for 1.00 s only"


def test_a_sound_cell_has_no_fault() -> None:
    assert faults([trace(0.0, 10, 50), trace(0.1, 10, 50)], 2) == []


def test_cached_prompts_are_told_beyond_the_template() -> None:
    sound = trace(0.0, 10, 50)
    assert faults([replace(sound, cached_tokens=9)], 1) == []
    (fault,) = faults([replace(sound, cached_tokens=32256)], 1)
    assert fault == "32256 tokens of a prompt came out of the prefix cache"


def test_a_failed_request_makes_its_round_invalid() -> None:
    gone = Trace(0.0, 1.0, error="ReadTimeout: timed out")
    round_ = judge([trace(0.0, 10, 50), gone], 2)
    assert "a request failed: ReadTimeout: timed out" in round_.faults
    cell = Cell("prose", "greedy", 2, 50, True, (round_,))
    assert (cell.valid, cell.tokens_per_second) == (False, None)


def test_a_cell_is_the_median_of_its_valid_rounds() -> None:
    rounds = tuple(judge([trace(0.0, rate, 100)], 1) for rate in (10, 30, 20))
    cell = Cell("code", "greedy", 1, 100, True, rounds)
    assert cell.valid
    assert cell.tokens_per_second == pytest.approx(20)
    assert cell.spread == pytest.approx(1.0)


def one(script: Script, concurrency: int = 1) -> list[Trace]:
    with serving(script) as server:

        def send(text: str, tokens: int, sampling: Sampling) -> Trace:
            return ask(server.api, text, tokens, sampling, 10)

        return together(send, [f"{number}" for number in range(concurrency)], 8, GREEDY)


def test_tokens_come_from_usage_and_not_from_pieces() -> None:
    (found,) = one(Script(pieces=8, tokens_a_piece=5))
    assert (found.completion_tokens, len(found.pieces), found.counted) == (40, 8, True)
    assert found.tokens_at(found.pieces[3].at) == 20


def test_a_server_that_counts_at_the_end_only_is_spread_by_characters() -> None:
    (found,) = one(Script(pieces=8, tokens_a_piece=5, continuous=False))
    assert not found.counted
    assert found.tokens_at(found.pieces[3].at) == pytest.approx(20)


def test_a_server_without_usage_gives_no_number() -> None:
    found = one(Script(usage=False))
    assert "the server told no usage, and pieces are not tokens" in judge(found, 1).faults


def test_a_server_with_fewer_slots_than_requests_is_found_out() -> None:
    found = one(Script(slots=2), concurrency=4)
    assert peak_running(found) == 2
    assert "at most 2 of 4 requests ran at once" in judge(found, 4).faults


def test_a_stream_that_is_cut_off_is_an_error() -> None:
    (found,) = one(Script(cut=True))
    assert found.error == "the stream ended without a finish reason"


def test_a_refusal_is_told_in_the_servers_words() -> None:
    (found,) = one(Script(status=503, pieces=0))
    assert found.error is not None
    assert found.error.startswith("HTTP 503")


def test_a_server_that_is_not_there_is_an_error() -> None:
    with serving(Script()) as server:
        api = server.api
    found = ask(api, "hello", 4, timeout=2)
    assert found.error is not None
    assert found.error.startswith("ConnectError")


def test_every_request_begins_otherwise_and_warm_up_is_dropped() -> None:
    plan = replace(
        DEFAULT, kinds=("json", "code"), concurrencies=(1, 3), rounds=2, warm_up=1, max_tokens=8
    )
    with serving(Script(pieces=25, delay=0.02)) as server:
        cells = list(measure_decode(server.api, plan, lambda: 2.5))
        prompts = server.prompts
    assert [(cell.kind, cell.concurrency, len(cell.rounds)) for cell in cells] == [
        ("json", 1, 2),
        ("json", 3, 2),
        ("code", 1, 2),
        ("code", 3, 2),
    ]
    assert all(cell.valid and cell.acceptance_length == 2.5 for cell in cells), cells
    assert len(prompts) == 3 * (1 + 3) * 2
    assert len({text[:8] for text in prompts}) == len(prompts)


def test_prompts_of_one_seed_repeat_and_of_another_do_not() -> None:
    assert prompt("prose", 1, 7) == prompt("prose", 1, 7) != prompt("prose", 2, 7)
    assert len({prompt(kind, 0, 0) for kind in KINDS}) == len(KINDS)
