"""The variables through which a plan tells the plugin about collectives; needs no torch."""

TRANSPORT = "TETRASPARK_TRANSPORT"
"""`shm`; absent when the engine keeps its own transport. From the site's `transport`."""

LIMITS = (
    ("TETRASPARK_MAX_REDUCE_BYTES", "max_reduce_bytes", "max_reduce_bytes"),
    ("TETRASPARK_MAX_GATHER_BYTES", "max_gather_bytes", "max_gather_bytes"),
    ("TETRASPARK_LANES", "lanes", "lanes"),
    ("TETRASPARK_LATE_SECONDS", "late_seconds", "late_limit_s"),
    ("TETRASPARK_FREEZE_SECONDS", "freeze_seconds", "freeze_limit_s"),
)
"""(variable, key of the site's [collectives], field of the group's Settings)."""
