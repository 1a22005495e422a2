"""The engine's own environment variables: a name that it does not read is an error.

The names are those in the files of the wheel, in `sglang-<version>.variables.txt` beside this
file; scripts/engine_variables.py writes it and a test compares it with the installed engine. A
table, and not a look at the engine, because a fleet is planned on machines without one. Of the
branch there is no wheel, hence no table: only what is known to be dead there is refused.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tetraspark.site.engines import BRANCH, RELEASE
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.sampled_graph import ACCEPT, FOLDED, KEY, OWNED

PREFIX = "SGLANG_"
OLD_PREFIX = "SGL_"
BRANCH_NAMES = ("DSV41_", "OFFLOAD_MODE")
"""Beginnings of names that the adapters in the branch's images read, and no file of the release."""
DEPRECATED = " deprecated"


@dataclass(frozen=True)
class Names:
    """Names of one engine, beginnings of families of names, and deprecated -> replacements."""

    known: frozenset[str]
    families: tuple[str, ...]
    deprecated: Mapping[str, tuple[str, ...]]

    def has(self, name: str) -> bool:
        """Tell whether the engine may read a name."""
        return name in self.known or name.startswith(self.families)


def parse_names(text: str) -> Names:
    """Read the table: one name a line, `*` after a family, replacements after `deprecated`."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    parts = [line.partition(DEPRECATED) for line in lines]
    return Names(
        known=frozenset(name for name, mark, _ in parts if not mark and not name.endswith("*")),
        families=tuple(name[:-1] for name, _, _ in parts if name.endswith("*")),
        deprecated={name: tuple(rest.split()) for name, mark, rest in parts if mark},
    )


@cache
def release_names() -> Names:
    """Return the names of the pinned release."""
    table = files("tetraspark.site") / f"sglang-{RELEASE}.variables.txt"
    return parse_names(table.read_text(encoding="utf-8"))


def variable_finding(path: KeyPath, name: str, engine: str | None, kind: object) -> Finding | None:
    """Refuse a variable that the engine of this site ignores, or that a typed key sets."""
    if engine == RELEASE and name.startswith(BRANCH_NAMES):
        seen = f"`{name}` is not read in this site's engine, sglang {RELEASE}"
        wanted = "a variable that it reads: those names belong to the dsv4.1 branch's images"
        return Finding(path, seen, wanted, "remove it, or build an image of the branch")
    if engine is None or not name.startswith((PREFIX, OLD_PREFIX)):
        return None
    if kind == "fleet" and name == OWNED[engine]:
        return Finding(path, f"`{name}`", f"that setting in `{KEY}`", f"set `{KEY}` instead")
    if engine == BRANCH:
        return _dead(path, f"`{name}` is not read", (FOLDED,), engine) if name == ACCEPT else None
    return _release_finding(path, name, kind)


def _release_finding(path: KeyPath, name: str, kind: object) -> Finding | None:
    names = release_names()
    new = PREFIX + name.removeprefix(OLD_PREFIX)
    if name == FOLDED and kind == "fleet":
        return _dead(path, f"`{name}` is deprecated", (ACCEPT,), RELEASE)
    if name in names.deprecated:
        return _dead(path, f"`{name}` is deprecated", names.deprecated[name], RELEASE)
    if name.startswith(OLD_PREFIX):
        old = names.has(new)
        return _dead(path, f"`{name}` is an old spelling", (new,), RELEASE) if old else None
    return None if names.has(name) else _unknown(path, name, names)


def _dead(path: KeyPath, what: str, instead: tuple[str, ...], engine: str) -> Finding:
    seen = f"{what} in this site's engine, sglang {engine}"
    if not instead:
        return Finding(path, seen, "a variable that this engine reads", "remove it")
    owned = instead == (OWNED[engine],)
    fix = f"remove it and set `{KEY}`" if owned else f"set {' or '.join(instead)}"
    return Finding(path, seen, f"what this engine reads: {', '.join(instead)}", fix)


def _unknown(path: KeyPath, name: str, names: Names) -> Finding:
    near = difflib.get_close_matches(name, names.known, 1, cutoff=0.8)
    seen = f"`{name}` occurs nowhere in this site's engine, sglang {RELEASE}"
    fix = f"did you mean {near[0]}?" if near else "remove it"
    return Finding(path, seen, "a variable that this engine reads", fix)
