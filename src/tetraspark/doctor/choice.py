"""Choosing checks of the catalogue by their IDs."""

import difflib
from collections.abc import Collection

from tetraspark.doctor import reach
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.definition import Definition, Kind
from tetraspark.doctor.fabric_facts import FABRIC
from tetraspark.errors import Problem, UsageError

ALWAYS = (reach.SSH, reach.PYTHON)
"""Made whatever is asked for: without them nothing else can be."""


def chosen(
    only: Collection[str], kind: Kind, burn: bool = False, replacing: bool = False
) -> tuple[Definition, ...]:
    """Return the checks of a kind of line; `only` are IDs, or their beginnings such as `RDMA`.
    `replacing` leaves out those that a line which runs would fail.

    Raises UsageError for a name that means none of them, and for a burn of a local line.
    """
    if burn and kind == "local":
        wanted, fix = "a fleet: a local line has no GPU to load", "leave --burn out"
        raise UsageError(Problem("--burn", "given for a local line", wanted, fix))
    known = [one for one in CATALOGUE if kind in one.kinds and (burn or not one.burns)]
    problems = [_unknown(name, kind) for name in only if not any(_means(name, it) for it in known)]
    if problems:
        raise UsageError(*problems)
    return tuple(
        one
        for one in known
        if not (replacing and one.idle)
        and (
            not only
            or one.id in ALWAYS
            or (burn and one.burns)
            or any(_means(name, one) for name in only)
        )
    )


def _means(name: str, one: Definition) -> bool:
    return one.id == name or one.id.startswith(f"{name.removesuffix('.')}.")


def _unknown(name: str, kind: Kind) -> Problem:
    other = [one for one in CATALOGUE if _means(name, one)]
    fix = "tetraspark doctor --list"
    if other:
        why = "--burn with it" if other[0].burns else f"a check of a {kind} line"
        return Problem("--only", repr(name), why, fix)
    names = sorted({word for one in CATALOGUE for word in (one.id, one.id.split(".")[0])})
    near = difflib.get_close_matches(name.upper(), names, 1, cutoff=0.5)
    wanted = f"the ID of a check, or its beginning: {near[0]}?" if near else "the ID of a check"
    return Problem("--only", repr(name), wanted, fix)


def reads_fabric(definitions: Collection[Definition]) -> bool:
    """Say whether any of the checks reads the fabric."""
    return any(FABRIC in one.ask for one in definitions)
