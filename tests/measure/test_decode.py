"""The rules by which a decode cell is believed, on traces and on servers that break them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.measure.synthetic import Script, serving
from tetraspark.measure.decode import DEFAULT, Cell, judge, measure_decode, together
from tetraspark.measure.prompts import KINDS, prompt
from tetraspark.measure.reader import Piece
from tetraspark.measure.stream import GREEDY, Sampling, Trace, ask
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

        return together(send, [f"{number}" for number in range(concurrency)], 64, GREEDY)


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


def said(*lines: str, max_tokens: int = 64, key: str | None = None) -> Trace:
    """What a request shows of a server that sends these lines."""
    with serving(Script(lines=lines)) as server:
        return ask(replace(server.api, key=key), "hello", max_tokens, timeout=5)


END = 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}'
WORD = 'data: {"choices": [{"delta": {"content": "word"}}]}'


def test_a_stream_that_was_held_back_is_no_decoding() -> None:
    found = one(Script(pieces=32, delay=0.001, burst=0.5))
    (fault,) = judge(found, 1).faults
    assert fault.startswith("the pieces came all at once: 0.0")


def test_bursts_are_no_decoding() -> None:
    """Half of the answer at once, and half later: the rate between is nobody's."""
    halves = [*(n / 1e4 for n in range(50)), *(5 + n / 1e4 for n in range(50))]
    pieces = tuple(Piece(at, "x", count) for count, at in enumerate(halves, 1))
    late = replace(trace(0, 10, 50), pieces=(Piece(0, "x", 1), *pieces[80:]), completion_tokens=100)
    (fault,) = faults([late], 1)
    assert fault == "the pieces came all at once: 99 of 99 tokens within 0.50 of 5.00 s"


def test_few_tokens_in_the_window_are_no_number() -> None:
    (fault,) = faults([trace(0, 10, 8)], 1)
    assert fault == "7 tokens in the common window, where 8 say something"


@pytest.mark.parametrize("counted", [True, False])
def test_more_tokens_than_were_asked_for_are_an_error(counted: bool) -> None:
    (found,) = one(Script(pieces=100, delay=0, obeys=False, continuous=counted))
    assert found.error is not None
    assert found.error.endswith(" tokens, where 64 were asked for")


def test_an_answer_without_end_is_ended() -> None:
    found = said(*[WORD] * 1000, max_tokens=2)
    assert found.error == "13 pieces for at most 2 tokens"
    with serving(Script(drip=0.05)) as server:
        found = ask(server.api, "hello", 1, timeout=1)
    assert found.error == "the answer does not end: the request's time is over"


@pytest.mark.parametrize("value", ["NaN", '"many"', "-1", "{}", "1e400", "true", "9" * 5000, "1.5"])
@pytest.mark.parametrize("key", ["completion_tokens", "prompt_tokens"])
def test_a_usage_that_is_no_count_is_told(key: str, value: str) -> None:
    found = said(WORD, f'data: {{"usage": {{"{key}": {value}}}}}', END)
    assert found.error is not None
    assert found.error.startswith((f"usage.{key} is ", "an event that is no JSON"))
    assert (found.prompt_tokens, found.completion_tokens) == (None, None)


def test_negative_cached_tokens_are_told() -> None:
    usage = '{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -5}}'
    assert said(WORD, f'data: {{"usage": {usage}}}', END).error == "usage.cached_tokens is -5"


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ((1, 40, 2), "the server's count of tokens went down within an answer"),
        (tuple(range(60, 90)), "the server's count of tokens went down within an answer"),
        (range(1, 21), "the server counted 20 tokens with the last piece, and 50 then"),
    ],
)
def test_counts_of_pieces_that_contradict_the_last_are_told(
    counts: Sequence[int], fault: str
) -> None:
    pieces = tuple(Piece(at / 10, "x", count) for at, count in enumerate(counts))
    assert fault in faults([replace(trace(0, 10, 50), pieces=pieces)], 1)


def test_reasoning_is_told_apart_by_either_name() -> None:
    for name in ("reasoning", "reasoning_content"):
        found = said(f'data: {{"choices": [{{"delta": {{"{name}": "hm"}}}}]}}', WORD, END)
        assert (found.error, found.text, found.answer) == (None, "hmword", "word")


def test_no_text_at_all_is_a_fault() -> None:
    assert "a request brought no first token" in faults([said(END)], 1)


def test_an_aborted_answer_is_an_error() -> None:
    assert said(WORD, END.replace("stop", "abort")).error == "the finish reason is 'abort'"


def test_done_ends_the_request_and_no_error_is_none() -> None:
    found = said('data: {"error": null}', WORD, END, "data: [DONE]", 'data: {"error": "late"}')
    assert (found.error, found.text) == (None, "word")


@pytest.mark.parametrize(
    "line",
    [
        "data: " + "[" * 100_000,
        "data: 5",
        "data: {",
        'data: {"choices": 7}',
        'data: {"choices": [3]}',
        'data: {"choices": [{"delta": 4}]}',
        'data: {"choices": [{"delta": {"content": {}}}]}',
        'data: {"choices": [{"delta": {}, "finish_reason": ["stop"]}]}',
        'data: {"usage": []}',
        'data: {"error": {"message": "no"}}',
    ],
)
def test_a_malformed_answer_is_an_error_and_no_traceback(line: str) -> None:
    assert said(WORD, line).error


def test_the_key_stands_in_no_error() -> None:
    found = said('data: {"error": "bad key sk-secret-1"}', key="sk-secret-1")
    assert found.error == "the server says bad key (the API key)"


def test_a_path_without_v1_is_hinted_at() -> None:
    with serving(Script(status=404, pieces=0)) as server:
        found = ask(replace(server.api, url=server.api.root), "hello", 4, timeout=5)
    assert str(found.error).endswith("(the URL does not end with /v1)")


def test_every_request_begins_otherwise_and_warm_up_is_dropped() -> None:
    plan = replace(
        DEFAULT, kinds=("json", "code"), concurrencies=(1, 3), rounds=2, warm_up=1, max_tokens=32
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
