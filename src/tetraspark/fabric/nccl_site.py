"""What a site itself tells NCCL: variables that win or clash, and flags that no ring can carry."""

from collections.abc import Iterable
from functools import reduce
from typing import Any

from tetraspark.errors import Problem, UsageError
from tetraspark.fabric.nccl_profile import Variable
from tetraspark.fabric.nccl_variables import PREFERRED
from tetraspark.site.environment import TYPED_ENV
from tetraspark.site.load import LoadedSite

A2A = "--moe-a2a-backend"


def own_value(loaded: LoadedSite, name: str) -> tuple[str, str] | None:
    """Return a variable's value as the site sets it, by `[env]` or a typed key, and where."""
    if name in loaded.site.env:
        return loaded.site.env[name], loaded.origin(f"env.{name}").where
    key = TYPED_ENV.get(name)
    # `fabric.topology` stands there for a variable that this profile sets itself.
    if key is None or key == "fabric.topology":
        return None
    site: Any = loaded.site
    value = reduce(lambda section, part: getattr(section, part, None), key.split("."), site)
    return None if value is None else (str(value), loaded.origin(key).where)


def settle(
    loaded: LoadedSite, wanted: Iterable[Variable], profile: str
) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
    """Return the variables to set, and those that the site sets itself.

    Raises UsageError naming both sides of every variable that the site sets to a value with which
    the profile does not work.
    """
    found, kept, problems = [], [], []
    for one in wanted:
        own = own_value(loaded, one.name)
        if own is None:
            found.append(one)
        elif own[0].lower() == one.value.lower() or one.name in PREFERRED:
            kept.append(Variable(one.name, own[0], "the site sets it", own[1]))
        else:
            seen = f"{one.name} = {own[0]!r}"
            by = f" ({one.where})" if one.where else ""
            text = f"{one.name}={one.value}{by}, of the NCCL profile {profile}: {one.reason}"
            problems.append(Problem(own[1], seen, text, "remove it; tetraspark fabric nccl"))
    if problems:
        raise UsageError(*problems)
    return tuple(found), tuple(kept)


def exchange_problems(loaded: LoadedSite) -> list[Problem]:
    """Return what of the site's flags sends between opposite nodes, which a ring cannot carry.

    Expert parallelism as such is free: SGLang then ends a layer with an all-reduce of all ranks.
    """
    words = [*loaded.site.engine.extra_args, ""]
    found = []
    for index, word in enumerate(words):
        flag, _, value = word.partition("=")
        value = value or words[min(index + 1, len(words) - 1)]
        if flag == A2A and value != "none":
            found.append(
                Problem(
                    loaded.origin("engine.extra_args").where,
                    f"{A2A} {value}",
                    "no all-to-all: opposite nodes of a ring share no cable",
                    f"remove {A2A}: experts are then joined by an all-reduce",
                )
            )
    return found
