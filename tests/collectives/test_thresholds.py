"""Thresholds as values: what is refused, and that nothing damaged is read."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraspark.collectives.thresholds import LARGEST, ThresholdKey, Thresholds, build_of

KEY = ThresholdKey(world=4, lanes=1, mtu=0, transport="shm", build="0123456789abcdef")
TUNED = Thresholds(two_shot_from=65536, reduce_limit=4 << 20, key=KEY)
SIZES = st.none() | st.integers(1, LARGEST // 16).map(lambda units: units * 16)


@given(two_shot=SIZES, limit=SIZES)
def test_what_is_written_is_read_back(two_shot: int | None, limit: int | None) -> None:
    value = Thresholds(two_shot, limit, KEY)
    assert Thresholds.read(json.loads(json.dumps(value.as_dict()))) == value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"two_shot_from": 65537}, "two_shot_from is 65537"),
        ({"two_shot_from": 0}, "two_shot_from is 0"),
        ({"two_shot_from": True}, "two_shot_from is True"),
        ({"reduce_limit": "4M"}, "reduce_limit is '4M'"),
        ({"reduce_limit": LARGEST + 16}, "reduce_limit is"),
        ({"reduce_limit": 16.0}, "reduce_limit is 16.0"),
        ({"key": None}, "key: None"),
        ({"key": {"world": 4}}, "key: keys world"),
        ({"key": {**vars(KEY), "world": 9}}, "world is 9"),
        ({"key": {**vars(KEY), "lanes": 0}}, "lanes is 0"),
        ({"key": {**vars(KEY), "mtu": -1}}, "mtu is -1"),
        ({"key": {**vars(KEY), "build": "../x"}}, "build is '../x'"),
        ({"key": {**vars(KEY), "transport": 7}}, "transport is 7"),
        ({"more": 1}, "thresholds: keys"),
    ],
)
def test_damage_is_named_and_never_read(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        Thresholds.read(TUNED.as_dict() | change)


@pytest.mark.parametrize("found", [None, [], "x", {}, 7])
def test_what_is_no_table_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match="thresholds: "):
        Thresholds.read(found)


def test_keys_that_differ_have_other_names_and_say_in_what() -> None:
    other = replace(KEY, lanes=2, build="fedcba9876543210")
    assert other.name != KEY.name
    assert KEY.differences(other) == ("lanes 2, not 1", f"build {other.build}, not {KEY.build}")
    assert KEY.differences(KEY) == ()


def test_a_build_is_of_the_machine_and_of_every_source_apart() -> None:
    one = build_of("x86-64", b"ab", b"c")
    assert one == build_of("x86-64", b"ab", b"c")
    assert len({one, build_of("x86-64", b"a", b"bc"), build_of("arm", b"ab", b"c")}) == 3
