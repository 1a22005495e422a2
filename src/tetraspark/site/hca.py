"""NCCL's grammar for a list of RDMA devices (`NCCL_IB_HCA`), read and written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST_DEVICES = 32
"""NCCL's MAX_IB_DEVS: it ignores what comes after, without a word."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True)
class HcaItem:
    """One entry: a device name, or its beginning, and a port where one is given."""

    name: str
    port: int | None = None


@dataclass(frozen=True)
class HcaList:
    """A list of devices: to use, or with `exclude` to leave out; `exact` names are whole."""

    items: tuple[HcaItem, ...]
    exclude: bool = False
    exact: bool = False

    def chooses(self, device: str, port: int = 1) -> bool:
        """Say whether NCCL would use a port of a device."""
        named = any(
            (device == item.name if self.exact else device.startswith(item.name))
            and item.port in (None, port)
            for item in self.items
        )
        return named != self.exclude


def parse(text: str) -> HcaList:
    """Read `[^][=]NAME[:PORT][,…]`; empty entries count for nothing, as in NCCL.

    Raises ValueError, with the reason, for a space, a name or port that is none, a list without
    an entry, and one of more than 32.
    """
    if any(c.isspace() for c in text):
        raise ValueError("a space, which NCCL takes for a part of a name")
    exclude = text.startswith("^")
    rest = text.removeprefix("^")
    exact = rest.startswith("=")
    items = tuple(_item(part) for part in rest.removeprefix("=").split(",") if part)
    if not items:
        raise ValueError("a list without devices")
    if len(items) > MOST_DEVICES:
        raise ValueError(f"{len(items)} devices; NCCL takes {MOST_DEVICES}")
    return HcaList(items, exclude, exact)


def render(devices: Iterable[str]) -> str:
    """Write whole device names for NCCL: `=a,b`. Raises ValueError as `parse` does."""
    text = "=" + ",".join(devices)
    parse(text)
    return text


def _item(text: str) -> HcaItem:
    name, colon, port = text.partition(":")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no device name")
    if colon and not (port.isdecimal() and port.isascii()):
        raise ValueError(f"{port!r} is no port")
    return HcaItem(name, int(port) if colon else None)
