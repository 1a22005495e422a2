"""Metrics: read back as Prometheus would, by its conventions, without free text or secrets."""

import math
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as read_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from tests.watch import status_lines as lines
from tetraspark.watch.board import Board
from tetraspark.watch.metric_table import METRICS
from tetraspark.watch.metrics import LINE_STATES, registry
from tetraspark.watch.observation import CanarySample, Observation

SECRET = "sk-verysecret-4711"
ODD = 'a"b\\c\nd{}=,\u202e\x00é 名'
OTHER_UNITS = re.compile(
    r"(milli|micro|nano|kilo|mega|giga|mib|gib)|_(ms|us|minutes|hours|percent|kb|mb|gb)(_|$)"
)


def exposition(seen: Observation | None, now: float = lines.AT + 3) -> str:
    board = Board()
    if seen is not None:
        board.post(seen)
    return generate_latest(registry(board, lambda: now)).decode()


def families(seen: Observation | None, now: float = lines.AT + 3) -> dict[str, Metric]:
    return {one.name: one for one in text_string_to_metric_families(exposition(seen, now))}


def value(seen: Observation, name: str, **labels: str) -> float:
    found = [
        sample.value
        for family in families(seen).values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return float(found[0])


def test_the_values_are_those_of_the_observation() -> None:
    seen = lines.degraded()
    lane = {"rank": "1", "node": "spark2", "peer": "2", "lane": "1", "device": "rocep1s0f1"}
    assert value(seen, "tetraspark_lane_errors_total", **lane) == 3
    assert value(seen, "tetraspark_lane_up", **lane) == 0
    assert value(seen, "tetraspark_lane_up", rank="1", peer="2", lane="0") == 1
    assert value(seen, "tetraspark_lane_bytes_total", **lane) == seen.ranks[1].lanes[3].bytes
    assert value(seen, "tetraspark_rank_collectives_total", rank="3") == 91_204_116
    assert value(seen, "tetraspark_rank_late_total", rank="0", peer="3") == 5
    assert value(seen, "tetraspark_node_memory_free_bytes", node="spark1") == 3 * lines.GIB
    assert value(seen, "tetraspark_kv_used_ratio") == 0.43
    assert value(seen, "tetraspark_accepted_tokens_per_step") == 2.41
    assert value(seen, "tetraspark_canary_seconds") == 0.42
    assert value(seen, "tetraspark_observation_age_seconds") == 3
    assert value(seen, "tetraspark_findings", id="LANE.DOWN") == 1
    assert value(seen, "tetraspark_rank_blamed", rank="1") == 1
    assert value(seen, "tetraspark_rank_blamed", rank="0") == 0
    assert value(seen, "tetraspark_version_info", part="sglang", version="0.5.23") == 1


@pytest.mark.parametrize("state", LINE_STATES)
def test_the_state_is_one_of_a_known_set(state: str) -> None:
    seen = replace(lines.ready(), state=state)
    samples = families(seen)["tetraspark_line_state"].samples
    assert {one.labels["state"]: one.value for one in samples} == {
        known: float(known == state) for known in LINE_STATES
    }


def test_a_state_that_nobody_knows_is_told_too() -> None:
    assert value(replace(lines.ready(), state="odd"), "tetraspark_line_state", state="odd") == 1


def test_before_the_first_look_there_is_only_that() -> None:
    found = families(None)
    assert list(found) == ["tetraspark_observed"]
    assert found["tetraspark_observed"].samples[0].value == 0


def test_what_was_not_told_has_no_sample() -> None:
    found = families(lines.down())
    assert not {"tetraspark_requests_running", "tetraspark_canary_ok", "tetraspark_lane_up"} & set(
        found
    )
    assert value(replace(lines.ready(), findings=()), "tetraspark_observed") == 1


def test_names_kinds_and_units_follow_the_conventions() -> None:
    found = families(replace(lines.degraded(), canary=CanarySample(1.0, 2.0, True, "")))
    assert len(found) == len(METRICS)
    for one in METRICS:
        family = found[one.name.removesuffix("_total") if one.kind == "counter" else one.name]
        assert family.type == one.kind and family.documentation == one.help and one.help
        assert re.fullmatch(r"tetraspark_[a-z]+(_[a-z]+)*", one.name)
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert not OTHER_UNITS.search(one.name)
        assert not one.name.endswith(("_count", "_sum", "_bucket", "_gauge", "_counter"))
        assert not {"le", "quantile", "job", "instance"} & set(one.labels)
        assert {frozenset(sample.labels) for sample in family.samples} == {frozenset(one.labels)}
    for word in ("memory", "page_cache"):
        assert all(
            one.name.endswith("_bytes") or one.name.endswith("_bytes_total")
            for one in METRICS
            if word in one.name
        )
    timed = [one.name for one in METRICS if re.search("age|timestamp|canary_s", one.name)]
    assert timed and all(name.endswith(("_seconds", "_bytes")) for name in timed)


def test_it_is_open_metrics_too() -> None:
    board = Board()
    board.post(lines.degraded())
    encode, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
    text = encode(registry(board)).decode()
    assert text.endswith("# EOF\n")
    # The library leaves this reader of its own untyped.
    found = list(read_openmetrics(text))  # type: ignore[no-untyped-call]
    assert len(found) == len(METRICS)


def test_no_free_text_and_so_no_secret_is_in_the_metrics() -> None:
    seen = replace(
        lines.degraded(),
        reason=SECRET,
        ranks=tuple(replace(one, detail=SECRET) for one in lines.ranks(5)),
        canary=CanarySample(lines.AT, 1.0, ok=False, reason=SECRET),
        findings=tuple(
            replace(one, where=SECRET, observed=SECRET, wanted=SECRET, fix=SECRET)
            for one in lines.degraded().findings
        ),
    )
    assert SECRET not in exposition(seen)


def test_odd_names_come_back_as_they_were() -> None:
    first = lines.ranks(7)[0]
    lane = replace(first.lanes[0], device=ODD)
    seen = replace(
        lines.ready(),
        line=ODD,
        run=None,
        ranks=(replace(first, node=ODD, lanes=(lane,)),),
        versions={ODD: ODD},
        findings=(replace(lines.MEMORY, id=ODD),),
    )
    assert value(seen, "tetraspark_lane_bytes_total", node=ODD, device=ODD) == lane.bytes
    assert value(seen, "tetraspark_run_info", line=ODD, run="") == 1
    assert value(seen, "tetraspark_version_info", part=ODD, version=ODD) == 1
    assert value(seen, "tetraspark_findings", id=ODD) == 1


def test_a_name_that_no_utf8_can_hold_does_not_end_the_scrape() -> None:
    ranks = tuple(replace(one, node="\udc80spark") for one in lines.ranks(7))
    assert value(replace(lines.ready(), ranks=ranks), "tetraspark_rank_blamed", rank="0") == 0


def test_a_lane_told_twice_is_one_series() -> None:
    first = lines.ranks(7)[0]
    twice = replace(first, lanes=(first.lanes[0], replace(first.lanes[0], bytes=99)))
    seen = replace(lines.ready(), ranks=(twice,))
    assert value(seen, "tetraspark_lane_bytes_total", rank="0") == 99


numbers = st.none() | st.floats() | st.integers(0, 10**18)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=20), st.data())
def test_anything_can_be_read_back(text: str, data: st.DataObject) -> None:
    drawn: dict[str, Any] = {one.name: data.draw(numbers) for one in fields(lines.ENGINE)}
    engine = replace(lines.ENGINE, **drawn)
    seen = replace(lines.ready(), line=text, state=text, engine=engine, versions={text: text})
    assert value(seen, "tetraspark_line_state", state=text) == 1
    for field, name in (
        ("running", "tetraspark_requests_running"),
        ("kv_used", "tetraspark_kv_used_ratio"),
    ):
        wanted = getattr(engine, field)
        if wanted is not None:
            got = value(seen, name)
            assert got == wanted or (math.isnan(got) and math.isnan(wanted))
