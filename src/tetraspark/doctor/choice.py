"""Choosing checks of the catalogue by their IDs."""

import difflib
from collections.abc import Collection, Iterable

from tetraspark.doctor import reach
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.definition import Definition, Kind
from tetraspark.doctor.fabric_facts import FABRIC
from tetraspark.errors import Problem, UsageError

ONLY = "--only"
ALWAYS = (reach.SSH, reach.PYTHON)
"""Made whatever is asked for: without them nothing else can be."""


def listed(words: Iterable[str]) -> list[str]:
    """Return the names in what was typed: options that may be repeated, with commas in them."""
    return [name.strip() for text in words for name in text.split(",") if name.strip()]


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
    require_known(only, [one.id for one in known], ONLY, kind)
    return tuple(
        one
        for one in known
        if not (replacing and one.idle)
        and (
            not only
            or one.id in ALWAYS
            or (burn and one.burns)
            or any(means(name, one.id) for name in only)
        )
    )


def require_known(names: Collection[str], ids: Collection[str], option: str, kind: Kind) -> None:
    """Raise UsageError for the names that an option was given and that mean none of the IDs."""
    problems = [
        _unknown(name, option, kind) for name in names if not any(means(name, id) for id in ids)
    ]
    if problems:
        raise UsageError(*problems)


def means(name: str, id: str) -> bool:
    """Tell whether a name is the ID of a check, or its beginning."""
    return id == name or id.startswith(f"{name.removesuffix('.')}.")


def _unknown(name: str, option: str, kind: Kind) -> Problem:
    other = [one for one in CATALOGUE if means(name, one.id)]
    fix = "tetraspark doctor --list"
    if other:
        why = f"a check of a {kind} line"
        if other[0].burns:
            why = "--burn with it" if option == ONLY else "a check that is made without a burn"
        return Problem(option, repr(name), why, fix)
    names = sorted({word for one in CATALOGUE for word in (one.id, one.id.split(".")[0])})
    near = difflib.get_close_matches(name.upper(), names, 1, cutoff=0.5)
    wanted = f"the ID of a check, or its beginning: {near[0]}?" if near else "the ID of a check"
    return Problem(option, repr(name), wanted, fix)


def reads_fabric(definitions: Collection[Definition]) -> bool:
    """Say whether any of the checks reads the fabric."""
    return any(FABRIC in one.ask for one in definitions)
