"""What a history of looks amounts to: the field's cases by their number, then for any history."""

import itertools
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.watch.looks import (
    LIMITS,
    LOST,
    OK,
    STEP,
    WRONG,
    engine,
    judged,
    look,
    rank,
    ranks,
    states,
)
from tetraspark.watch.judge import doubtful, judge
from tetraspark.watch.look import Look

TEN = range(10)


def test_a_line_that_answers_is_ready() -> None:
    assert states([look(0, canary=OK), look(STEP)]) == ["ready", "ready"]


def test_L51_a_dead_rank_is_named_while_health_answers() -> None:
    dead = (*ranks()[:2], rank(2, state="exited", detail="killed by signal 9"), rank(3))
    words = "rank 2 (spark3): engine ended: killed by signal 9"
    (found,) = judged([look(0, verdict="degraded", reason=words, rank=2, ranks=dead)])
    assert (found.state, found.rank) == ("degraded", 2)
    assert "killed by signal 9" in found.reason


def test_L52_a_wedge_is_tokens_that_stand_while_requests_run() -> None:
    standing = engine(running=3, generated_tokens=81234)
    looks = [look(at * STEP, engine=standing, canary=LOST) for at in TEN]
    *before, last = judged([look(-STEP, engine=standing, canary=OK), *looks])
    assert "wedged" not in [one.state for one in before[:8]]
    assert last.state == "wedged"
    assert last.reason.startswith("no token and no collective for 150 s while 3 requests run")


def test_L52_the_rank_that_the_others_wait_for_is_named() -> None:
    waiting = tuple(rank(one, collective="ready" if one == 2 else "waiting") for one in range(4))
    looks = [look(at * STEP, ranks=waiting, canary=LOST) for at in TEN]
    found = judged(looks)[-1]
    assert (found.state, found.rank) == ("wedged", 2)
    assert "rank 2 (spark3) is not in the collective that all others wait in" in found.reason


def test_the_rank_with_fewer_collectives_is_named() -> None:
    behind = tuple(rank(one, operations=999 if one == 3 else 1000) for one in range(4))
    found = judged([look(at * STEP, ranks=behind, canary=LOST) for at in TEN])[-1]
    assert found.rank == 3
    assert "has completed 999 collectives, others 1000" in found.reason


def test_what_the_communicators_agreed_on_comes_first() -> None:
    behind = tuple(rank(one, operations=999 if one == 3 else 1000) for one in range(4))
    root = (1, "late: no doorbell for 300 s")
    found = judged([look(at * STEP, ranks=behind, canary=LOST, root=root) for at in TEN])[-1]
    assert found.rank == 1
    assert "rank 1 (spark2): late: no doorbell" in found.reason


def test_a_wedge_without_a_culprit_says_so() -> None:
    found = judged([look(at * STEP, canary=LOST) for at in TEN])[-1]
    assert (found.state, found.rank) == ("wedged", None)
    assert "no rank stands out" in found.reason


def test_L54_a_long_prefill_is_no_wedge() -> None:
    """The needle of a million tokens: 324 s in which no canary is answered."""
    looks = [
        look(at * STEP, canary=LOST, engine=engine(running=1, prefilled_tokens=at * 40_000))
        for at in range(25)
    ]
    found = judged([look(-STEP, canary=OK), *looks])
    assert {one.state for one in found} == {"ready"}
    assert "the engine works" in found[-1].reason


def test_a_prefill_without_metrics_shows_in_the_collectives() -> None:
    looks = [look(at * STEP, canary=LOST, ranks=ranks(1000 + at)) for at in range(25)]
    assert set(states([look(-STEP, canary=OK), *looks])) == {"ready"}


def test_L55_an_api_that_hangs_over_idle_ranks_is_a_wedge() -> None:
    """The tokenizer process hangs: ranks are well, nothing reaches them."""
    assert states(look(at * STEP, canary=LOST) for at in TEN)[-1] == "wedged"


def test_one_lost_canary_is_no_wedge_and_two_are_a_warning() -> None:
    looks = [look(0, canary=OK), look(STEP, canary=LOST), look(2 * STEP, canary=LOST)]
    assert states(looks) == ["ready", "ready", "degraded"]
    assert states([*looks, look(3 * STEP, canary=OK)])[-1] == "ready"


def test_one_wrong_answer_is_looked_at_again_and_two_are_degraded() -> None:
    looks = [look(0, canary=OK), look(STEP, canary=WRONG), look(2 * STEP), look(45, canary=WRONG)]
    assert states(looks) == ["ready", "ready", "ready", "degraded"]
    assert "'the the the'" in judged(looks)[-1].reason


def test_a_wrong_key_is_no_wedge() -> None:
    refused = replace(WRONG, reason="HTTP 401: no")
    assert set(states(look(at * STEP, canary=refused) for at in TEN)) == {"degraded"}


def test_an_idle_line_between_canaries_is_ready() -> None:
    assert set(states([look(0, canary=OK), *(look(at * STEP) for at in range(1, 50))])) == {"ready"}


def test_an_old_count_of_running_requests_is_no_wedge() -> None:
    old = engine(running=2)
    looks = [look(at * STEP, engine=old, canary=OK if at % 4 == 0 else None) for at in range(40)]
    assert set(states(looks)) == {"ready"}


def test_frozen_for_one_look_is_a_doubt_and_for_two_is_degraded() -> None:
    frozen = (*ranks()[:1], rank(1, state="frozen"), *ranks()[2:])
    stopped = look(STEP, verdict="degraded", reason="rank 1 is stopped", rank=1, ranks=frozen)
    before, after = look(0, canary=OK), look(3 * STEP, canary=OK)
    assert states([before, stopped, after]) == ["ready", "ready", "ready"]
    again = replace(stopped, at=2 * STEP)
    assert states([before, stopped, again, after]) == ["ready", "ready", "degraded", "ready"]


def test_a_node_out_of_reach_once_is_a_session_that_broke() -> None:
    lost = (*ranks()[:3], rank(3, state="unreachable"))
    gone = look(STEP, verdict="degraded", reason="rank 3 (spark4): ssh", rank=3, ranks=lost)
    assert states([look(0, canary=OK), gone, replace(gone, at=30)]) == [
        "ready",
        "ready",
        "degraded",
    ]


def test_a_frozen_rank_that_stays_so_is_a_wedge_with_its_name() -> None:
    frozen = (*ranks()[:1], rank(1, state="frozen"), *ranks()[2:])
    looks = [
        look(at * STEP, verdict="degraded", reason="rank 1 (spark2): it is stopped", rank=1,
             ranks=frozen, canary=LOST)
        for at in TEN
    ]  # fmt: skip
    found = judged(looks)[-1]
    assert (found.state, found.rank) == ("wedged", 1)


def test_a_stopped_line_is_down_and_a_new_run_has_no_past() -> None:
    wedged = [look(at * STEP, canary=LOST) for at in TEN]
    down = look(200, verdict="down", reason="stopped")
    new = look(215, run="next", verdict="starting", reason="phase load, 3 s in it")
    assert states([*wedged, down, new])[-2:] == ["down", "starting"]
    fresh = look(230, run="next", canary=OK)
    assert states([*wedged, down, new, fresh])[-1] == "ready"


def test_a_watch_that_was_stopped_itself_counts_only_what_it_saw() -> None:
    """Two looks far apart are no proof of what was between them."""
    assert states([look(0, canary=LOST), look(100_000, canary=LOST)])[-1] == "degraded"


def test_a_line_that_cannot_be_seen_is_never_taken_for_ready() -> None:
    hidden = look(STEP, run="other", verdict="unknown", reason="plan.json: not readable")
    found = judged([look(0, canary=OK), hidden])[-1]
    assert (found.state, found.reason) == ("degraded", "plan.json: not readable")


def test_a_canary_is_asked_at_once_where_something_is_wrong() -> None:
    assert not doubtful([])
    assert not doubtful([look(0, canary=OK), look(STEP)])
    assert doubtful([look(0, canary=OK), look(STEP, canary=LOST), look(2 * STEP)])
    assert doubtful([look(0, canary=OK), look(STEP, canary=WRONG)])
    assert not doubtful([look(0, canary=WRONG), look(STEP, canary=OK), look(2 * STEP)])
    assert doubtful([look(0, canary=OK), look(STEP, verdict="degraded", reason="frozen")])


canaries = st.sampled_from([OK, LOST, WRONG, None])
histories = st.lists(
    st.tuples(canaries, st.integers(0, 3), st.integers(0, 50), st.integers(0, 5)), max_size=40
)


def history(parts: list[tuple[object, int, int, int]], begin: float = 0.0) -> list[Look]:
    """Return looks in which tokens and collectives grow as drawn."""
    found, tokens, operations = [look(begin, canary=OK)], 0, 1000
    for number, (canary, running, made, done) in enumerate(parts, 1):
        tokens, operations = tokens + made, operations + done
        counted = engine(running=running, generated_tokens=tokens)
        found.append(
            look(begin + number * STEP, canary=canary, engine=counted, ranks=ranks(operations))
        )
    return found


@settings(max_examples=50, deadline=None)
@given(histories)
def test_a_wedge_needs_two_minutes_without_anything(
    parts: list[tuple[object, int, int, int]],
) -> None:
    looks = history(parts)
    for end, found in enumerate(judged(looks)):
        if found.state == "wedged":
            last = looks[max(0, end - 8) : end + 1]
            assert all(not b.lives_after(a) for a, b in itertools.pairwise(last))
            assert any(one.silent for one in last)


@settings(max_examples=50, deadline=None)
@given(histories, st.floats(-1e9, 1e9))
def test_times_count_only_by_their_differences(
    parts: list[tuple[object, int, int, int]], begin: float
) -> None:
    # Whole seconds: a float that is far from 0 has no others.
    assert states(history(parts)) == states(history(parts, float(round(begin))))


@settings(max_examples=50, deadline=None)
@given(histories, st.lists(st.floats(-1e12, 1e12), min_size=41, max_size=41))
def test_a_wall_clock_that_jumps_changes_nothing(
    parts: list[tuple[object, int, int, int]], walls: list[float]
) -> None:
    looks = history(parts)
    jumped = [
        one if one.canary is None else replace(one, canary=replace(one.canary, asked_at=wall))
        for one, wall in zip(looks, walls, strict=False)
    ]
    assert states(looks) == states(jumped)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([OK, LOST]), min_size=1, max_size=40))
def test_no_lost_canary_counts_while_tokens_grow(asked: list[object]) -> None:
    looks = [
        look(at * STEP, canary=one, engine=engine(running=1, generated_tokens=at))
        for at, one in enumerate(asked)
    ]
    assert set(states(looks)) == {"ready"}


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20), st.integers(10, 20))
def test_silence_for_long_enough_is_always_a_wedge(before: int, silent: int) -> None:
    well = [look(at * STEP, canary=OK) for at in range(before)]
    dead = [look((before + at) * STEP, canary=LOST) for at in range(silent)]
    assert judge([*well, *dead], LIMITS).state == "wedged"
