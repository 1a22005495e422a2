"""Messages for systemd's journal: one line each, with a priority in front (sd-daemon(3))."""

import os
import stat
from collections.abc import Mapping
from typing import TextIO

from tetraspark.errors import Problem
from tetraspark.fleet.plain import plain

PRIORITIES: Mapping[str, int] = {"error": 3, "warning": 4, "found": 5}
"""Word of a problem -> syslog priority."""
INFORMATION = 6


def is_journal(stream: TextIO | None) -> bool:
    """Say whether a stream leads to the journal: systemd names the socket in JOURNAL_STREAM."""
    named = os.environ.get("JOURNAL_STREAM", "")
    try:
        found = os.fstat(stream.fileno()) if stream else None
    except (OSError, ValueError):
        return False
    if found is None or not stat.S_ISSOCK(found.st_mode):
        return False
    return named == f"{found.st_dev}:{found.st_ino}"


def entry(text: str, priority: int = INFORMATION) -> str:
    """Return a text as one line of the journal, without colours and control characters."""
    encodable = plain(text).encode(errors="backslashreplace").decode()
    return f"<{priority}>{' '.join(encodable.split())}"


def problem_entry(problem: Problem, word: str) -> str:
    """Return a problem as one line of the journal."""
    return entry(f"{word}: {problem}", PRIORITIES.get(word, PRIORITIES["error"]))
