"""What a line's watch says and has done, for those who only ask."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from tetraspark.errors import Problem, RunError
from tetraspark.line.quiet import is_quiet
from tetraspark.watch.process import WatchProcess
from tetraspark.watch.record import Record

T = TypeVar("T")


def told_of(root: Path) -> dict[str, Any]:
    """Return the watch of the line whose folder is `root`: its pid, its last words, its acts.

    `pid` is None without a watch, and then `state` is what one said before it ended. `page` has
    the address of its page, or why there is none. `quiet` says that a suite is timing the line
    and nobody looks. `damaged` are the records that could not be read.
    """
    record, damaged = Record(root), list[Problem]()

    def known(read: Callable[[], T | None]) -> T | None:
        try:
            return read()
        except RunError as error:
            damaged.extend(error.problems)
            return None

    said = known(record.said) or {}
    names = ("at", "run", "state", "reason", "rank", "since", "findings")
    pid = WatchProcess(root).pid()
    page = known(record.page) if pid is not None else None
    acts = known(record.acts) or []
    return {
        "pid": pid,
        "page": asdict(page) if page is not None else None,
        "quiet": is_quiet(root),
        **{name: said.get(name) for name in names},
        "acts": acts,
        "damaged": [one.as_dict() for one in damaged],
    }
