"""The NCCL profile of a line: the variables that every rank gets, why, and what will carry."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.nccl_library import Overlay

Name = Literal["switch", "pair", "stock-merged", "stock-uniform", "patched"]


@dataclass(frozen=True)
class Variable:
    """One variable of every rank and why.

    `where` is the line of the site that decided it, "" where none did.

    Raises ValueError for one without a value or a reason: unset means absent.
    """

    name: str
    value: str
    reason: str
    where: str = ""

    def __post_init__(self) -> None:
        if not self.value or not self.reason:
            raise ValueError(f"{self.name} without a value or a reason")


@dataclass(frozen=True)
class NcclProfile:
    """What NCCL is told on a line, the same on every rank.

    `variables` are to be set; `kept` are those that the site sets itself and the profile leaves
    alone. `devices` are those to name in NCCL_IB_HCA and `carrying` those that the model expects
    to move data, by node. `version` is that of the image, None where it is not known; `overlays`
    are the mounts of a patched library, one a rank. `refusals` say why it cannot be used, and
    `changes` what would make another or a better one.
    """

    name: Name
    version: str | None
    variables: tuple[Variable, ...]
    kept: tuple[Variable, ...]
    devices: Mapping[str, tuple[str, ...]]
    carrying: Mapping[str, tuple[str, ...]]
    needs_patch: bool
    overlays: tuple[Overlay, ...]
    refusals: tuple[Problem, ...]
    changes: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [one.name for one in (*self.variables, *self.kept)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"more than once: {', '.join(sorted(twice))}")

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables to set, in order."""
        return MappingProxyType({one.name: one.value for one in self.variables})

    def require(self) -> None:
        """Raise RunError with every reason against using it."""
        if self.refusals:
            raise RunError(*self.refusals)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return {"schema": "tetraspark.nccl/1", **asdict(self)}


def rank_problems(
    profile: NcclProfile, environments: Mapping[int, Mapping[str, str]], nodes: Mapping[int, str]
) -> list[Problem]:
    """Return a problem for each rank whose environment lacks a variable or has another value.

    `environments` are whole: of a plan, or of /proc/PID/environ of the engine's processes. One
    rank that connects otherwise than the rest is enough for all of them to wait.
    """
    found = []
    for rank, environment in sorted(environments.items()):
        for one in (*profile.variables, *profile.kept):
            seen = environment.get(one.name)
            if seen != one.value:
                text = "not set" if seen is None else f"{one.name}={seen}"
                where, wanted = f"{nodes[rank]} rank {rank}", f"{one.name}={one.value}"
                fix = f"set it on every rank alike: {one.reason}"
                found.append(Problem(where, text, wanted, fix))
    return found
