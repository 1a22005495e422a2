"""What a line's watch says and has done, for those who only ask."""

from pathlib import Path
from typing import Any

from tetraspark.line.quiet import is_quiet
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.record import Record


def told_of(root: Path) -> dict[str, Any]:
    """Return the watch of the line whose folder is `root`: its pid, its last words, its acts.

    `pid` is None without a watch, and then `state` is what one said before it ended. `quiet` says
    that a suite is timing the line and nobody looks.
    """
    record = Record(root)
    said = record.said() or {}
    names = ("at", "run", "state", "reason", "rank", "since", "findings")
    return {
        "pid": WatchProcess(root).pid(),
        "quiet": is_quiet(root),
        **{name: said.get(name) for name in names},
        "acts": record.acts(),
    }
