"""The metrics of a line: names, kinds, labels and meanings, in base units."""

from dataclasses import dataclass
from typing import Literal

RANK = ("rank", "node")
LANE = ("rank", "node", "peer", "lane", "device")


@dataclass(frozen=True)
class Definition:
    """One metric; `help` ends its exposition's HELP line and stands in docs/status-page.md."""

    name: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    help: str


METRICS = (
    Definition("tetraspark_observed", "gauge", (), "1 once the line was looked at, 0 before"),
    Definition("tetraspark_run_info", "gauge", ("line", "run"), "1, with the line and its run"),
    Definition("tetraspark_version_info", "gauge", ("part", "version"), "1, for each part"),
    Definition(
        "tetraspark_observation_timestamp_seconds",
        "gauge",
        (),
        "Unix time of the look that the other values are of",
    ),
    Definition("tetraspark_observation_age_seconds", "gauge", (), "time since that look"),
    Definition(
        "tetraspark_line_state", "gauge", ("state",), "1 for the line's state, 0 for others"
    ),
    Definition(
        "tetraspark_line_state_since_timestamp_seconds",
        "gauge",
        (),
        "Unix time since when the line has been in its state",
    ),
    Definition("tetraspark_rank_state", "gauge", (*RANK, "state"), "1 for the rank's state"),
    Definition("tetraspark_rank_blamed", "gauge", RANK, "1 for the rank that the state is due to"),
    Definition("tetraspark_rank_collectives_total", "counter", RANK, "collectives completed"),
    Definition(
        "tetraspark_rank_late_total",
        "counter",
        (*RANK, "peer"),
        "times that the peer kept the rank waiting",
    ),
    Definition(
        "tetraspark_lane_up", "gauge", LANE, "1 for a lane that is up, 0 for one that is not"
    ),
    Definition("tetraspark_lane_bytes_total", "counter", LANE, "bytes sent to the peer"),
    Definition("tetraspark_lane_writes_total", "counter", LANE, "RDMA writes posted to the peer"),
    Definition("tetraspark_lane_errors_total", "counter", LANE, "errors of the lane"),
    Definition("tetraspark_node_memory_free_bytes", "gauge", RANK, "MemFree of the rank's node"),
    Definition(
        "tetraspark_node_memory_available_bytes", "gauge", RANK, "MemAvailable of the rank's node"
    ),
    Definition("tetraspark_node_page_cache_bytes", "gauge", RANK, "page cache of the rank's node"),
    Definition("tetraspark_requests_running", "gauge", (), "requests that are being decoded"),
    Definition("tetraspark_requests_waiting", "gauge", (), "requests in the queue"),
    Definition("tetraspark_generated_tokens_total", "counter", (), "tokens generated"),
    Definition("tetraspark_prefilled_tokens_total", "counter", (), "prompt tokens computed"),
    Definition("tetraspark_generation_tokens_per_second", "gauge", (), "rate of the last look"),
    Definition("tetraspark_kv_used_ratio", "gauge", (), "share of the KV pool in use, 0 to 1"),
    Definition("tetraspark_swa_used_ratio", "gauge", (), "share of the SWA pool in use, 0 to 1"),
    Definition(
        "tetraspark_accepted_tokens_per_step", "gauge", (), "mean tokens of a speculative step"
    ),
    Definition("tetraspark_canary_ok", "gauge", (), "1 when the last canary's answer was right"),
    Definition("tetraspark_canary_seconds", "gauge", (), "time that the last canary took"),
    Definition(
        "tetraspark_canary_timestamp_seconds", "gauge", (), "Unix time when it was asked for"
    ),
    Definition("tetraspark_findings", "gauge", ("id",), "open findings"),
)
"""In the order of the exposition. A metric without a value has no sample."""
