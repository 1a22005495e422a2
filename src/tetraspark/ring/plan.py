"""The ring plan: who is where, every address, path, route and rule, as one value with an ID."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.ring.marker import Marker
from tetraspark.ring.member import Cable, Member
from tetraspark.ring.path import Path
from tetraspark.ring.requirement import Caps, Requirement
from tetraspark.ring.route import HostRoute, PermanentNeighbour
from tetraspark.ring.rule import RelayRule
from tetraspark.ring.verification import Verification

VERSION = 1
MAKE = "tetraspark ring plan --out FILE"


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
        try:
            body = json.loads(text)
            told = body.pop("id")
            plan = _ADAPTER.validate_python(body)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            seen = _first(error)
            raise UsageError(Problem(where, seen, "a plan of a ring", MAKE)) from error
        if plan.version != VERSION:
            wanted = f"version {VERSION}"
            raise UsageError(Problem(where, f"a plan of version {plan.version}", wanted, MAKE))
        if plan.id != told:
            seen = f"ID {told}, and content whose ID is {plan.id}"
            raise UsageError(Problem(where, seen, "a plan as it was written", MAKE))
        return plan


_ADAPTER = TypeAdapter(RingPlan)


def read_plan(file: FilePath) -> RingPlan:
    """Read a plan from a file. Raises UsageError."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        seen = error.strerror or str(error)
        raise UsageError(Problem(str(file), seen, "the file of a plan", MAKE)) from error
    return RingPlan.parse(text, str(file))


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _body(plan: RingPlan) -> dict[str, Any]:
    body: dict[str, Any] = _ADAPTER.dump_python(plan, mode="json")
    return body


def _first(error: Exception) -> str:
    """Say in one line why a text is no plan."""
    if isinstance(error, ValidationError):
        one = error.errors()[0]
        return f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
    return f"no key {error}" if isinstance(error, KeyError) else f"no JSON of a plan: {error}"
