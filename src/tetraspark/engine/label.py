"""The label that every process of a run carries in its environment."""

RUN_DIR = "TETRASPARK_RUN_DIR"
"""Folder of the run; absent in an engine that was started by hand."""

RANK = "TETRASPARK_RANK"
"""Rank of the process, as planned."""

API = "TETRASPARK_API"
"""Base URL of the API inside the head's container, for the image's health check."""
