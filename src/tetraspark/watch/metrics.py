"""An observation as Prometheus metrics, without any of its free text."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tetraspark.fleet.rank import State
from tetraspark.watch.board import Board
from tetraspark.watch.metric_table import METRICS, Definition
from tetraspark.watch.observation import Finding, Observation, RankSample

LINE_STATES = ("ready", "degraded", "wedged", "down", "starting")
RANK_STATES = (*get_args(State), "broken")
Family = CounterMetricFamily | GaugeMetricFamily
Sample = tuple[str, tuple[str, ...], float | None]
"""Name, values of the labels, value; None is "not told" and makes no sample."""


def registry(board: Board, clock: Callable[[], float] = time.time) -> CollectorRegistry:
    """Return a registry of the board's line alone: nothing of this process."""
    found = CollectorRegistry(auto_describe=False)
    found.register(LineCollector(board, clock))
    return found


class LineCollector(Collector):
    """Makes the metrics of the newest observation each time they are asked for."""

    def __init__(self, board: Board, clock: Callable[[], float] = time.time) -> None:
        self._board = board
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield each metric that has samples."""
        seen = self._board.latest()
        told: dict[str, dict[tuple[str, ...], float]] = {}
        for name, labels, value in _samples(seen, self._clock()):
            if value is not None:
                # Two samples of one name and labels would make Prometheus refuse the scrape.
                told.setdefault(name, {})[tuple(map(_encodable, labels))] = value
        for definition in METRICS:
            if samples := told.get(definition.name):
                family = _family(definition)
                for labels, value in samples.items():
                    family.add_metric(labels, value)
                yield family


def _family(definition: Definition) -> Family:
    kind = CounterMetricFamily if definition.kind == "counter" else GaugeMetricFamily
    return kind(definition.name, definition.help, labels=definition.labels)


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _samples(seen: Observation | None, now: float) -> Iterator[Sample]:
    yield "tetraspark_observed", (), float(seen is not None)
    if seen is None:
        return
    yield "tetraspark_run_info", (seen.line, seen.run or ""), 1
    for part, version in seen.versions.items():
        yield "tetraspark_version_info", (part, version), 1
    yield "tetraspark_observation_timestamp_seconds", (), seen.at
    yield "tetraspark_observation_age_seconds", (), max(now - seen.at, 0.0)
    yield from _state("tetraspark_line_state", (), seen.state, LINE_STATES)
    yield "tetraspark_line_state_since_timestamp_seconds", (), seen.since
    for rank in seen.ranks:
        yield from _of_rank(rank, blamed=rank.rank == seen.rank)
    yield from _of_engine(seen)
    yield from _of_canary(seen)
    yield from _of_findings(seen.findings)


def _state(
    name: str, labels: tuple[str, ...], found: str, known: tuple[str, ...]
) -> Iterator[Sample]:
    """Yield a sample for every known state, and for the one that was found."""
    for state in dict.fromkeys((*known, found)):
        yield name, (*labels, state), float(state == found)


def _of_rank(rank: RankSample, blamed: bool) -> Iterator[Sample]:
    labels = (str(rank.rank), rank.node)
    yield from _state("tetraspark_rank_state", labels, rank.state, RANK_STATES)
    yield "tetraspark_rank_blamed", labels, float(blamed)
    yield "tetraspark_rank_collectives_total", labels, rank.operations
    for peer, times in rank.late:
        yield "tetraspark_rank_late_total", (*labels, str(peer)), times
    for lane in rank.lanes:
        where = (*labels, str(lane.peer), str(lane.lane), lane.device)
        yield "tetraspark_lane_up", where, float(lane.state == "up")
        yield "tetraspark_lane_bytes_total", where, lane.bytes
        yield "tetraspark_lane_writes_total", where, lane.writes
        yield "tetraspark_lane_errors_total", where, lane.errors
    yield "tetraspark_node_memory_free_bytes", labels, rank.memory_free
    yield "tetraspark_node_memory_available_bytes", labels, rank.memory_available
    yield "tetraspark_node_page_cache_bytes", labels, rank.page_cache


def _of_engine(seen: Observation) -> Iterator[Sample]:
    engine = seen.engine
    yield "tetraspark_requests_running", (), engine.running
    yield "tetraspark_requests_waiting", (), engine.waiting
    yield "tetraspark_generated_tokens_total", (), engine.generated_tokens
    yield "tetraspark_prefilled_tokens_total", (), engine.prefilled_tokens
    yield "tetraspark_generation_tokens_per_second", (), engine.tokens_per_second
    yield "tetraspark_kv_used_ratio", (), engine.kv_used
    yield "tetraspark_swa_used_ratio", (), engine.swa_used
    yield "tetraspark_accepted_tokens_per_step", (), engine.acceptance


def _of_canary(seen: Observation) -> Iterator[Sample]:
    canary = seen.canary
    if canary is not None:
        yield "tetraspark_canary_ok", (), float(canary.ok)
        yield "tetraspark_canary_seconds", (), canary.seconds
        yield "tetraspark_canary_timestamp_seconds", (), canary.asked_at


def _of_findings(findings: Iterable[Finding]) -> Iterator[Sample]:
    for name, count in Counter(one.id for one in findings).items():
        yield "tetraspark_findings", (name,), count
