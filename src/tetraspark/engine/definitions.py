"""The functions, methods and classes of an engine's files, as dedented source."""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator

from tetraspark.engine.metadata import printable
from tetraspark.engine.tree import PACKAGE, Tree

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# The ends of lines that Python's own line numbers count; `str.splitlines` knows more of them.
LINE_END = re.compile(r"\r\n|\r|\n")


class Definitions:
    """What the files of a tree define; each file is read and parsed once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._parsed: dict[str, tuple[list[str], list[ast.stmt]]] = {}

    def source_at(self, path: str) -> str | None:
        """Return the source at a dotted path, decorators included; None when nothing is there."""
        place = self._locate(path)
        if place is None:
            return None
        lines, body = self._parse(place[0])
        node: Definition | None = None
        for name in place[1]:
            node = _definition(body, name)
            if node is None:
                return None
            body = node.body
        return _source(lines, node) if node is not None else None

    def files_with(self, mark: re.Pattern[str]) -> Iterator[str]:
        """Yield the files whose text holds the pattern."""
        for file in self._tree.files():
            if mark.search(self._tree.read(file) or ""):
                yield file

    def of_file(self, file: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
        """Yield the dotted path, the names inside the module and the source of each definition."""
        lines, body = self._parse(file)
        stem = printable(file.removesuffix(".py").removesuffix("/__init__"))
        module = stem.replace("/", ".")
        for names, node in _walk(body, ()):
            yield ".".join((PACKAGE, module, *names)), names, _source(lines, node)

    def _locate(self, path: str) -> tuple[str, list[str]] | None:
        """Split a dotted path into the file of its module and the names inside it."""
        parts = path.split(".")[1:]
        for length in range(len(parts), 0, -1):
            stem = "/".join(parts[:length])
            for file in (f"{stem}.py", f"{stem}/__init__.py"):
                if file in self._parsed or self._tree.read(file) is not None:
                    return file, parts[length:]
        return None

    def _parse(self, file: str) -> tuple[list[str], list[ast.stmt]]:
        """Return a file's lines and statements; what is no Python defines nothing."""
        if file not in self._parsed:
            text = self._tree.read(file) or ""
            self._parsed[file] = LINE_END.split(text), _statements(text)
        return self._parsed[file]


def _statements(text: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _definition(body: list[ast.stmt], name: str) -> Definition | None:
    """Return the last definition of a name: the one that Python uses."""
    found = [node for node in body if isinstance(node, Definition) and node.name == name]
    return found[-1] if found else None


def _walk(
    body: list[ast.stmt], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Definition]]:
    for node in body:
        if isinstance(node, Definition):
            yield (*above, node.name), node
        if isinstance(node, ast.ClassDef):
            yield from _walk(node.body, (*above, node.name))


def _source(lines: list[str], node: Definition) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    segment = lines[first - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(line.rstrip() for line in segment)) + "\n"
