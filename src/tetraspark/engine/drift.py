"""Find what the plugin needs of the engine's source by reading it, and tell what has changed.

A hook is written against one body of code. When the engine changes that body, the hook may
silently do the wrong thing, so every hook names the sha256 of what it was written for.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from tetraspark.engine.definitions import Definitions
from tetraspark.engine.tree import Tree

Verdict = Literal["found", "moved", "changed", "missing"]
# Other products in the same wheel, with copies of their own that nothing has moved to.
OTHER_PRODUCTS = ("multimodal_gen/", "test/")
SHOWN_PLACES = 3


@dataclass(frozen=True)
class Target:
    """Something of the engine that a hook replaces, wraps or calls.

    `path` is dotted (module, then class or function); `accepted` holds the source hashes the
    hook was written for; `adapter` is the file of ours to re-check when none matches.
    """

    path: str
    accepted: tuple[str, ...]
    adapter: str

    @property
    def names(self) -> tuple[str, ...]:
        """Class and method, or the function: a module's name has no capital letter."""
        parts = self.path.split(".")
        first = next((i for i, part in enumerate(parts) if part.lower() != part), len(parts) - 1)
        return tuple(parts[first:])


@dataclass(frozen=True)
class Finding:
    """What was found of a target.

    `found`: its source is accepted; `changed`: another source at its path; `moved`: nothing at
    its path, but the same source or the same qualified name at each of `places`; `missing`.
    `sha256` is that of the source, where there is one.
    """

    target: Target
    verdict: Verdict
    sha256: str = ""
    places: tuple[str, ...] = ()

    @property
    def detail(self) -> str:
        """What a person has to know beside the verdict."""
        known = ", ".join(sha256[:12] for sha256 in self.target.accepted)
        source = f"source {self.sha256[:12]}, written for {known}"
        if self.verdict == "missing":
            return "not there"
        if self.verdict == "moved":
            same = self.sha256 in self.target.accepted
            where = ", ".join(self.places[:SHOWN_PLACES])
            return f"moved to {where}; {'its source is the same' if same else source}"
        return source

    def __str__(self) -> str:
        return f"{self.target.path}: {self.detail}; re-check {self.target.adapter}"


def inspect_all(tree: Tree, targets: tuple[Target, ...]) -> list[Finding]:
    """Inspect every target in order; the whole tree is searched only for what is not in place.

    Raises TreeError when the tree cannot be read.
    """
    definitions = Definitions(tree)
    findings = [_in_place(definitions, target) for target in targets]
    lost = [finding.target for finding in findings if finding.verdict == "missing"]
    elsewhere = _search(definitions, lost) if lost else {}
    return [elsewhere.get(finding.target, finding) for finding in findings]


def inspect_target(tree: Tree, target: Target) -> Finding:
    """Inspect one target."""
    return inspect_all(tree, (target,))[0]


def _in_place(definitions: Definitions, target: Target) -> Finding:
    source = definitions.source_at(target.path)
    if source is None:
        return Finding(target, "missing")
    digest = _sha256(source)
    return Finding(target, "found" if digest in target.accepted else "changed", digest)


def _search(definitions: Definitions, lost: list[Target]) -> dict[Target, Finding]:
    """Return a finding for each lost target that is somewhere else, the same source first."""
    names = "|".join(sorted({re.escape(target.names[-1]) for target in lost}))
    mark = re.compile(rf"^\s*(?:async\s+def|def|class)\s+(?:{names})\b", re.MULTILINE)
    same: dict[Target, list[tuple[str, str]]] = {}
    named: dict[Target, list[tuple[str, str]]] = {}
    for file in definitions.files_with(mark):
        if file.startswith(OTHER_PRODUCTS):
            continue
        for path, found, source in definitions.of_file(file):
            digest = _sha256(source)
            for target in lost:
                if digest in target.accepted:
                    same.setdefault(target, []).append((path, digest))
                elif found == target.names:
                    named.setdefault(target, []).append((path, digest))
    places = named | same
    return {
        target: Finding(target, "moved", found[0][1], tuple(path for path, _ in found))
        for target, found in places.items()
    }


def _sha256(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
