"""The state of each node when a line last became ready, kept beside the line's runs.

An update of the kernel or the driver has moved the memory an idle node has by 8 GiB and more; what
worked then is therefore compared with what is there now.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tetraspark.errors import RunError
from tetraspark.fleet.record_file import Shape, read_record, set_aside
from tetraspark.fleet.run_files import write_atomically
from tetraspark.fleet.state_home import state_home

FILE = "good.json"


@dataclass(frozen=True)
class NodeState:
    """Kernel release, GPU driver version ("" where it could not be seen), and MemAvailable of the
    idle node in bytes.
    """

    kernel: str
    driver: str
    available: int


class StoredState(Shape):
    """`NodeState`, in a line's file."""

    kernel: str
    driver: str
    available: int


STATES = TypeAdapter(dict[str, StoredState])


def baseline_path(line: str) -> Path:
    """Return the file of a line."""
    return state_home() / line / FILE


def read_baseline(line: str) -> dict[str, NodeState]:
    """Return the state of each node by name; empty where no line was ready yet, or it is damaged.

    A damaged file counts as none: it is only ever something to compare with.
    """
    try:
        found = _read(baseline_path(line))
    except (OSError, RunError):
        return {}
    names = [one.name for one in fields(NodeState)]
    return {node: NodeState(*(one[name] for name in names)) for node, one in found.items()}


def keep_baseline(line: str, states: Mapping[str, NodeState]) -> None:
    """Keep the states as those of a line that became ready; for `serve`, once it is.

    They must be those of the idle nodes, from before the start. A damaged file is set aside.
    """
    path = baseline_path(line)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        _read(path)
    except RunError:
        set_aside(path)
    write_atomically(path, {node: asdict(state) for node, state in states.items()})


def _read(path: Path) -> dict[str, Any]:
    wanted, fix = "the state of each node when the line became ready", "tetraspark serve"
    found: dict[str, Any] | None = read_record(path, STATES, wanted, fix)
    return found or {}
