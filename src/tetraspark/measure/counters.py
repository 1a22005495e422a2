"""Counters of a line that a soak watches: what its communicators and its machine say. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

ERROR = re.compile(r"err|late|retr|out_of_seq|out_of_buffer|icrc|nak|duplicate|stall")
"""Names of counters that should not move."""
LATE = ".late"
MEMORY = "mem_available_gib"


def of_ranks(progress: Iterable[Mapping[str, Any] | None]) -> dict[str, float]:
    """Return the error counters that ranks' communicators last wrote, as `rank2.NAME`."""
    found: dict[str, float] = {}
    for rank, one in enumerate(progress):
        if one is not None:
            found[f"rank{rank}.failed"] = float(one.get("root") is not None)
            found |= {f"rank{rank}.{name}": value for name, value in _errors(one)}
    return found


def errors_of(names: Iterable[str], late: bool = True) -> tuple[str, ...]:
    """Return those names that stand for errors; late peers are none without `late`.

    Ranks that share the cores of one machine wait for each other, and nothing is wrong.
    """
    found = (name for name in names if ERROR.search(name) or name.endswith(".failed"))
    return tuple(name for name in found if late or not name.endswith(LATE))


def mem_available_gib(meminfo: str) -> float | None:
    """Return MemAvailable of the text of /proc/meminfo, in GiB."""
    match = re.search(r"^MemAvailable:\s+(\d{1,18}) kB", meminfo, re.MULTILINE)
    return int(match[1]) / (1 << 20) if match else None


def _errors(progress: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for peer in progress.get("peers", ()):
        yield f"peer{peer['rank']}{LATE}", float(peer["late"]["count"])
    details = progress.get("details") or {}
    for device in details.get("devices", ()):
        for name, value in device.get("counters", {}).items():
            if ERROR.search(name):
                yield f"{device['device']}.{name}", float(value)
    for lane in details.get("lanes", ()):
        yield f"lane{lane['lane']}.peer{lane['peer']}.stalls", float(lane["stalls"])
