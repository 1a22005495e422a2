"""Find a hook target's source by reading files, and hash it; nothing is imported.

A hook is written against one body of code. When the engine changes that body, the hook may
silently do the wrong thing, so every hook names the sha256 of what it was written for.
"""

import ast
import hashlib
import importlib.util
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Target:
    """Something of the engine that a hook replaces, wraps or calls.

    `path` is dotted (module, then class or function); `accepted` holds the source hashes the
    hook was written for; `adapter` is the file of ours to re-check when none matches.
    """

    path: str
    accepted: tuple[str, ...]
    adapter: str


@dataclass(frozen=True)
class Finding:
    """What was found at a target: `found` (hash accepted), `changed` or `missing`."""

    target: Target
    verdict: Literal["found", "changed", "missing"]
    sha256: str = ""

    def __str__(self) -> str:
        if self.verdict == "missing":
            return f"{self.target.path}: not there any more; re-check {self.target.adapter}"
        return (
            f"{self.target.path}: source is {self.sha256[:12]}, "
            f"written for {', '.join(known[:12] for known in self.target.accepted)}; "
            f"re-check {self.target.adapter}"
        )


def package_root(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, or None."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def locate(root: Path, path: str) -> tuple[Path, list[str]] | None:
    """Split a dotted path into the module file under `root` and the names inside it."""
    parts = path.split(".")[1:]
    for length in range(len(parts), 0, -1):
        stem = root.joinpath(*parts[:length])
        for file in (stem.with_suffix(".py"), stem / "__init__.py"):
            if file.is_file():
                return file, parts[length:]
    return None


def source_of(text: str, names: list[str]) -> str | None:
    """Return the dedented source of a function, method or class, decorators included."""
    body: list[ast.stmt] = ast.parse(text).body
    node: Definition | None = None
    for name in names:
        node = _definition(body, name)
        if node is None:
            return None
        body = node.body
    if node is None:
        return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(line.rstrip() for line in lines)) + "\n"


def _definition(body: list[ast.stmt], name: str) -> Definition | None:
    for node in body:
        if isinstance(node, Definition) and node.name == name:
            return node
    return None


def inspect_target(root: Path, target: Target) -> Finding:
    """Compare one target's source under a package folder with the accepted hashes."""
    place = locate(root, target.path)
    source = source_of(place[0].read_text(encoding="utf-8"), place[1]) if place else None
    if source is None:
        return Finding(target, "missing")
    digest = hashlib.sha256(source.encode()).hexdigest()
    return Finding(target, "found" if digest in target.accepted else "changed", digest)


def inspect_all(root: Path, targets: tuple[Target, ...]) -> list[Finding]:
    """Inspect every target in order."""
    return [inspect_target(root, target) for target in targets]
