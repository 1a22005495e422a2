"""Thresholds from synthetic curves: what is found, what never is, and that noise flips nothing."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tetraspark.measure.tune import (
    MARGIN,
    RUN,
    Curve,
    Decision,
    Timing,
    agree,
    decide,
    disagreements,
    reduce_limit,
    two_shot_from,
    typical,
)

SIZES = tuple(1 << power for power in range(12, 25))
NOISE = 0.02
FACTORS = st.floats(1 - NOISE, 1 + NOISE)


def line(fixed: float, per_kib: float) -> tuple[float, ...]:
    return tuple(fixed + per_kib * size / 1024 for size in SIZES)


def curve(one: tuple[float, ...], two: tuple[float, ...], rival: tuple[float, ...]) -> Curve:
    return tuple(map(Timing, SIZES, one, two, rival))


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Fixed costs and rates; two-shot moves half of the bytes for up to three times the start."""
    fixed, rate = draw(st.floats(5, 200)), draw(st.floats(0.05, 2))
    two = line(fixed * draw(st.floats(1, 3)), rate * draw(st.floats(0.4, 1.2)))
    rival = line(fixed * draw(st.floats(0.5, 30)), rate * draw(st.floats(0.3, 3)))
    return curve(line(fixed, rate), two, rival)


@st.composite
def noisy(draw: st.DrawFn, true: Curve) -> Curve:
    return tuple(
        Timing(
            t.size, t.one_shot * draw(FACTORS), t.two_shot * draw(FACTORS), t.rival * draw(FACTORS)
        )
        for t in true
    )


ONE, RIVAL = line(20, 0.2), line(500, 0.3)
CROSSING = curve(ONE, line(40, 0.1), RIVAL)


def test_a_clean_crossing_is_found() -> None:
    # 40 + 0.1 k <= 0.95 (20 + 0.2 k) from k = 233 KiB on.
    assert decide(CROSSING) == Decision(256 << 10, SIZES[-1])


def test_none_where_two_shot_saves_nothing() -> None:
    assert two_shot_from(curve(ONE, line(25, 0.2), RIVAL)) is None
    assert two_shot_from(curve(ONE, ONE, RIVAL)) is None


def test_no_threshold_from_one_lucky_size_or_at_the_very_end() -> None:
    slow = curve(ONE, line(25, 0.21), RIVAL)
    for lucky in range(len(SIZES) - RUN):
        spikes = tuple(
            replace(t, two_shot=t.one_shot / 2) if lucky <= i < lucky + RUN - 1 else t
            for i, t in enumerate(slow)
        )
        assert two_shot_from(spikes) is None
    at_end = tuple(
        replace(t, two_shot=t.one_shot / 2) if i >= len(SIZES) - RUN + 1 else t
        for i, t in enumerate(slow)
    )
    assert two_shot_from(at_end) is None


def test_no_threshold_below_a_size_at_which_two_shot_is_slower() -> None:
    late = tuple(replace(t, two_shot=2 * t.one_shot) if t.size == 4 << 20 else t for t in CROSSING)
    assert two_shot_from(late) is None
    early = tuple(
        replace(t, two_shot=2 * t.one_shot) if t.size == 512 << 10 else t for t in CROSSING
    )
    assert two_shot_from(early) == 1 << 20


def test_the_limit_ends_where_the_rival_is_faster_and_not_at_a_tie() -> None:
    assert reduce_limit(curve(ONE, ONE, line(1, 0.1)), None) is None
    # 20 + 0.2 k <= 0.95 (100 + 0.1 k) up to k = 714 KiB.
    assert reduce_limit(curve(ONE, ONE, line(100, 0.1)), None) == 512 << 10
    assert reduce_limit(curve(ONE, ONE, ONE), None) is None


def test_the_limit_is_that_of_the_algorithm_chosen() -> None:
    # The rival lies between: one-shot loses to it from 1 MiB on, two-shot nowhere.
    between = curve(ONE, line(40, 0.1), line(100, 0.12))
    assert reduce_limit(between, None) == 512 << 10
    assert decide(between) == Decision(256 << 10, SIZES[-1])


@given(true=curves(), faster=st.floats(0.3, 1))
def test_a_faster_two_shot_never_raises_its_threshold(true: Curve, faster: float) -> None:
    quick = tuple(replace(t, two_shot=t.two_shot * faster) for t in true)
    end = SIZES[-1] * 2
    assert (two_shot_from(quick) or end) <= (two_shot_from(true) or end)


@given(true=curves(), slower=st.floats(1, 4))
def test_a_slower_rival_never_lowers_the_limit(true: Curve, slower: float) -> None:
    slow = tuple(replace(t, rival=t.rival * slower) for t in true)
    assert (reduce_limit(slow, None) or 0) >= (reduce_limit(true, None) or 0)


@given(true=curves(), data=st.data())
def test_noise_never_chooses_what_is_slower(true: Curve, data: st.DataObject) -> None:
    found = decide(data.draw(noisy(true)))
    for t in true:
        if found.two_shot_from is not None and t.size >= found.two_shot_from:
            assert t.two_shot < t.one_shot * (1 + MARGIN) * (1 + NOISE) / (1 - NOISE)
        if t.size == found.two_shot_from:
            assert t.two_shot < t.one_shot
        if t.size == found.reduce_limit:
            assert t.ours(found.two_shot_from) < t.rival


@given(true=curves(), data=st.data())
def test_noise_never_hides_a_gain_well_above_the_margin(true: Curve, data: st.DataObject) -> None:
    sure = [t.two_shot < t.one_shot * 0.9 for t in true]
    first = next((i for i in range(len(true) - RUN + 1) if all(sure[i:])), None)
    assume(first is not None)
    assert first is not None
    found = two_shot_from(data.draw(noisy(true)))
    assert found is not None
    assert found <= SIZES[first]


@given(data=st.data())
def test_repeats_of_one_machine_agree(data: st.DataObject) -> None:
    repeats = [data.draw(noisy(CROSSING)) for _ in range(3)]
    decision = decide(typical(repeats))
    assert disagreements(repeats, decision) == ()
    assert decision.two_shot_from in (128 << 10, 256 << 10, 512 << 10)


def test_the_typical_curve_forgets_one_bad_repeat() -> None:
    bad = tuple(replace(t, two_shot=t.two_shot * 50) for t in CROSSING)
    assert typical([CROSSING, bad, CROSSING]) == CROSSING


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (curve(ONE, ONE, RIVAL), "repeat 2: two-shot from nowhere"),
        (curve(ONE, line(21, 0.05), RIVAL), "repeat 2: two-shot from 16384 bytes"),
        (curve(ONE, line(40, 0.1), line(100, 0.05)), "repeat 2: ours up to 1048576 bytes"),
    ],
)
def test_repeats_that_disagree_are_named(bad: Curve, says: str) -> None:
    repeats = [CROSSING, bad, CROSSING]
    decision = decide(typical(repeats))
    (found,) = disagreements(repeats, decision)
    assert found == says
    assert agree(repeats, decision)
    assert not agree([CROSSING, bad], decision)
    assert not agree([CROSSING, bad, bad, CROSSING, CROSSING], decision)


def test_one_size_apart_is_no_disagreement() -> None:
    near = curve(ONE, line(28, 0.1), RIVAL)
    assert decide(near).two_shot_from == 128 << 10
    assert disagreements([CROSSING, near, CROSSING], decide(CROSSING)) == ()
