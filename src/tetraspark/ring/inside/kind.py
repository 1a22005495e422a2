"""What every kind of object of the ring on a node can do: runs inside the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from tetraspark.ring.inside.seen import Seen

OWNER = "116"
"""The protocol number of our routes and neighbours, that of `tetraspark.ring.route`."""


@dataclass(frozen=True)
class Look:
    """What there is in an object's place, by content.

    `state` is present, different, missing, not-in-hardware or no-link. `marked` says that what is
    there bears our mark; `settable` that it is a setting, which may be replaced by whoever puts
    `before` back.
    """

    state: str
    detail: str = ""
    marked: bool = False
    settable: bool = False
    before: str | None = None


class Described:
    """A frozen dataclass of its kind, which the journal keeps as a JSON object."""

    kind: ClassVar[str]

    def as_dict(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return {"kind": self.kind, **vars(self)}


class Kind(Protocol):
    """An object that the plan wants on the node."""

    @property
    def key(self) -> str:
        """What there can be one of: another object with this key is in the way."""
        ...

    def look(self, seen: Seen) -> Look:
        """Compare what is there with what is wanted."""
        ...

    def make(self) -> None:
        """Put it there, in place of what of ours is there. Raises Refusal."""
        ...

    def unmake(self, before: str | None) -> None:
        """Take it away, or put a setting back to `before`. Raises Refusal."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        ...
