"""What a line's watch says and has done, for those who only ask."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tetraspark.line.quiet import is_quiet
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.record import Record


def told_of(root: Path) -> dict[str, Any]:
    """Return the watch of the line whose folder is `root`: its pid, its last words, its acts.

    `pid` is None without a watch, and then `state` is what one said before it ended. `page` has
    the address of its page, or why there is none. `quiet` says that a suite is timing the line
    and nobody looks.
    """
    record = Record(root)
    said = record.said() or {}
    names = ("at", "run", "state", "reason", "rank", "since", "findings")
    pid = WatchProcess(root).pid()
    page = record.page() if pid is not None else None
    return {
        "pid": pid,
        "page": asdict(page) if page is not None else None,
        "quiet": is_quiet(root),
        **{name: said.get(name) for name in names},
        "acts": record.acts(),
    }
