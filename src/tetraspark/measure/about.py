"""What a report says of itself: where its numbers come from, and what they may be compared with."""

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

HardwareClass = Literal["stand-in", "spark", "unknown"]


@dataclass(frozen=True)
class About:
    """Where and when a suite ran.

    `hardware` is in words; numbers of different `hardware_class` are never put side by side.
    `client` is the machine that asked. `samplers` are what looked at the machines during the timed
    windows: nothing does. `engine` holds the server's own settings, empty where it tells none.
    """

    suite: str
    at: str
    tetraspark: str
    url: str
    model: str
    line: str | None
    run: str | None
    site_sha256: str | None
    hardware_class: HardwareClass
    hardware: str
    client: str
    engine: Mapping[str, Any]
    samplers: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for a report."""
        return asdict(self)


def now() -> str:
    """Return the time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def this_version() -> str:
    """Return the version of tetraspark."""
    return version("tetraspark")


def this_machine() -> str:
    """Return what this machine is, in words: without its name or its owner's."""
    return f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, {platform.system()}"
