"""The ring plan: who is where, every address, path, route and rule, as one value with an ID."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.saved_file import parse_json
from tetraspark.ring.marker import Marker
from tetraspark.ring.member import Cable, Member
from tetraspark.ring.path import Path
from tetraspark.ring.requirement import Caps, Requirement
from tetraspark.ring.route import HostRoute, PermanentNeighbour
from tetraspark.ring.rule import RelayRule
from tetraspark.ring.verification import Verification
from tetraspark.ring.whole import require_whole
from tetraspark.site.source import read_text

VERSION = 1
MAKE = "tetraspark ring plan --out FILE"
WANTED = "a plan of a ring"


@dataclass(frozen=True)
class NodePlan:
    """What one node gets. `clsact` are the devices that need that qdisc for `rules`.

    `netplan` is the text of the one file that gives the ring's devices addresses and MTU.
    """

    node: str
    netplan: str
    requirements: tuple[Requirement, ...]
    routes: tuple[HostRoute, ...]
    neighbours: tuple[PermanentNeighbour, ...]
    clsact: tuple[str, ...]
    rules: tuple[RelayRule, ...]
    markers: tuple[Marker, ...]
    verifications: tuple[Verification, ...]


@dataclass(frozen=True)
class RingPlan:
    """A ring or a line of nodes in rank order; equal plans have equal IDs.

    `members` and `nodes` are by rank. `lost` says what is planned around, "" for nothing. `mtu`
    in bytes. `warnings` are findings that did not refuse the plan.

    Raises ValueError for a plan that names a rank, a device or a number that cannot be; `walk`
    finds those that lead astray.
    """

    version: int
    shape: Literal["ring", "line"]
    lost: str
    mtu: int
    members: tuple[Member, ...]
    cables: tuple[Cable, ...]
    paths: tuple[Path, ...]
    nodes: tuple[NodePlan, ...]
    caps: Caps
    warnings: tuple[Problem, ...]

    def __post_init__(self) -> None:
        if self.version == VERSION:
            require_whole(self)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical JSON of everything else."""
        return hashlib.sha256(canonical(_body(self)).encode()).hexdigest()

    def of(self, node: str) -> NodePlan:
        """Return what a node gets. Raises LookupError."""
        for one in self.nodes:
            if one.node == node:
                return one
        raise LookupError(f"no node {node} in the plan")

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-able values, the ID first."""
        return {"id": self.id, **_body(self)}

    def text(self) -> str:
        """Return the plan as a file holds it; `parse` takes it back."""
        return json.dumps(self.as_dict(), indent=1) + "\n"

    @staticmethod
    def parse(text: str, where: str) -> "RingPlan":
        """Take a plan from its text; `where` is the file in messages.

        Raises UsageError for a text that is no plan, and for one that was changed by hand.
        """
        body = parse_json(text, where, WANTED, MAKE)
        if not isinstance(body, dict) or "id" not in body:
            seen = "no key 'id'" if isinstance(body, dict) else "not a JSON object"
            raise UsageError(Problem(where, seen, WANTED, MAKE))
        told = body.pop("id")
        try:
            plan = _ADAPTER.validate_python(body)
        except ValidationError as error:
            raise UsageError(Problem(where, _first(error), WANTED, MAKE)) from error
        if plan.version != VERSION:
            wanted = f"version {VERSION}"
            raise UsageError(Problem(where, f"a plan of version {plan.version}", wanted, MAKE))
        if plan.id != told:
            seen = f"ID {told}, and content whose ID is {plan.id}"
            raise UsageError(Problem(where, seen, "a plan as it was written", MAKE))
        return plan


_ADAPTER = TypeAdapter(RingPlan)


def is_plan(text: str) -> bool:
    """Whether a text is a plan, of whichever version and also one that was changed since."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and {"id", "version", "members", "paths"} <= body.keys()


def read_plan(file: FilePath) -> RingPlan:
    """Read a plan from a file. Raises UsageError."""
    return RingPlan.parse(read_text(file, "the file of a plan", MAKE), str(file))


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _body(plan: RingPlan) -> dict[str, Any]:
    body: dict[str, Any] = _ADAPTER.dump_python(plan, mode="json")
    return body


def _first(error: ValidationError) -> str:
    """Say in one line why a value is no plan."""
    one = error.errors()[0]
    place = ".".join(map(str, one["loc"]))
    return (f"{place}: " if place else "") + one["msg"].removeprefix("Value error, ")
