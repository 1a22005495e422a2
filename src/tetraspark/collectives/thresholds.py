"""From which sizes an all-reduce goes which way, as it was measured, and what that holds for."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tetraspark.collectives.flags import MAX_UNITS, UNIT
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD

LARGEST = UNIT * MAX_UNITS
"""Bytes; the largest all-reduce that a flag can name."""
BUILD_DIGITS = 16


def build_of(machine: str, *sources: bytes) -> str:
    """Return the hash (16 hex digits) of a machine, in words, and of the sources that move data."""
    digest = hashlib.sha256(machine.encode())
    for source in sources:
        digest.update(len(source).to_bytes(8, "little") + source)
    return digest.hexdigest()[:BUILD_DIGITS]


@dataclass(frozen=True)
class ThresholdKey:
    """What decides the times of an all-reduce. Raises ValueError for what no group can be.

    `mtu` is in bytes, 0 where no packets are sent. `build` is `build_of` the machine.
    """

    world: int
    lanes: int
    mtu: int
    transport: str
    build: str

    def __post_init__(self) -> None:
        if not 2 <= _whole(self.world, "world") <= MAX_WORLD:
            raise ValueError(f"world is {self.world}: wanted 2..{MAX_WORLD}")
        if not 1 <= _whole(self.lanes, "lanes") <= MAX_LANES:
            raise ValueError(f"lanes is {self.lanes}: wanted 1..{MAX_LANES}")
        if _whole(self.mtu, "mtu") < 0:
            raise ValueError(f"mtu is {self.mtu}: wanted bytes, or 0")
        for name in ("transport", "build"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.replace("-", "").isalnum():
                raise ValueError(f"{name} is {value!r}: wanted letters, digits and -")

    @property
    def name(self) -> str:
        """A file name of this key alone."""
        return f"{self.transport}-w{self.world}-l{self.lanes}-m{self.mtu}-{self.build}"

    def differences(self, other: "ThresholdKey") -> tuple[str, ...]:
        """Name each field in which another key differs, with its value and this one's."""
        pairs = [(f.name, getattr(other, f.name), getattr(self, f.name)) for f in fields(self)]
        return tuple(f"{name} {its}, not {mine}" for name, its, mine in pairs if its != mine)


@dataclass(frozen=True)
class Thresholds:
    """Sizes in bytes of one all-reduce; equal on every rank, or the vote refuses the group.

    `two_shot_from`: from here on two-shot is faster than one-shot; None: nowhere.
    `reduce_limit`: the largest size measured at which ours is faster than the rival (gloo or
    NCCL); None: at no size. Raises ValueError for sizes that no all-reduce has.
    """

    two_shot_from: int | None
    reduce_limit: int | None
    key: ThresholdKey

    def __post_init__(self) -> None:
        for name in ("two_shot_from", "reduce_limit"):
            value = getattr(self, name)
            if value is None:
                continue
            if _whole(value, name) % UNIT or not UNIT <= value <= LARGEST:
                raise ValueError(f"{name} is {value}: wanted a multiple of {UNIT} up to {LARGEST}")

    def __str__(self) -> str:
        two, limit = self.two_shot_from, self.reduce_limit
        start = "two-shot nowhere" if two is None else f"two-shot from {two} bytes"
        end = "ours nowhere" if limit is None else f"ours up to {limit} bytes"
        return f"{start}, {end}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-able; `read` takes them back."""
        return asdict(self)

    @classmethod
    def read(cls, found: object) -> "Thresholds":
        """Return what `as_dict` gave. Raises ValueError: a damaged value has no default."""
        values = _exactly(found, cls, "thresholds")
        key = ThresholdKey(**_exactly(values["key"], ThresholdKey, "key"))
        return cls(values["two_shot_from"], values["reduce_limit"], key)


def _exactly(found: object, wanted: type[Any], what: str) -> dict[str, Any]:
    names = {field.name for field in fields(wanted)}
    if not isinstance(found, Mapping) or set(found) != names:
        seen = f"keys {', '.join(sorted(map(str, found)))}" if isinstance(found, Mapping) else found
        raise ValueError(f"{what}: {seen}; wanted the keys {', '.join(sorted(names))}")
    return dict(found)


def _whole(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}: wanted a whole number")
    return value
