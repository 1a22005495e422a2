"""The variables through which a plan tells the plugin about collectives; needs no torch."""

TRANSPORT = "TETRASPARK_TRANSPORT"
"""`shm` or `verbs`; absent when the engine keeps its own transport. The site's `transport`."""

SHM, VERBS = "shm", "verbs"

WIRING = "TETRASPARK_WIRING"
"""With `verbs`: which devices carry which lane between which ranks, as `Wiring.to_json` writes."""

OPTIONS = (
    ("TETRASPARK_MIN_LANES", "collectives.min_lanes", "min_lanes"),
    ("TETRASPARK_MIN_RDMA_MTU", "fabric.min_rdma_mtu", "min_mtu"),
    ("TETRASPARK_TRAFFIC_CLASS", "fabric.traffic_class", "traffic_class"),
)
"""With `verbs`: (variable, key of the site, field of VerbsOptions)."""

MAX_TWO_SHOT = "TETRASPARK_MAX_TWO_SHOT_BYTES"
"""Largest all-reduce in two steps; 0 for none."""

TWO_SHOT_FROM = "TETRASPARK_TWO_SHOT_FROM"
"""Bytes from which an all-reduce goes in two steps, or `NEVER`."""

NEVER = "never"

LANES = "TETRASPARK_LANES"

LIMITS = (
    ("TETRASPARK_MAX_REDUCE_BYTES", "max_reduce_bytes", "max_reduce_bytes"),
    ("TETRASPARK_MAX_GATHER_BYTES", "max_gather_bytes", "max_gather_bytes"),
    (LANES, "lanes", "lanes"),
    ("TETRASPARK_LATE_SECONDS", "late_seconds", "late_limit_s"),
    ("TETRASPARK_FREEZE_SECONDS", "freeze_seconds", "freeze_limit_s"),
)
"""(variable, key of the site's [collectives], field of the group's Settings)."""
