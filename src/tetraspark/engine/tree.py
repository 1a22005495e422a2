"""An engine's files as text: of a wheel, a folder, or the installed package.

Nothing is imported, unpacked or run: a wheel that could not be installed here is read as well as
any other.
"""

import importlib.util
import tomllib
import zipfile
import zlib
from email.parser import HeaderParser
from pathlib import Path
from typing import Protocol

PACKAGE = "sglang"
METADATA = ".dist-info/METADATA"
# Relative to what a person names: the package itself, what holds it, a checkout of the sources.
INSIDE = ("", PACKAGE, f"python/{PACKAGE}")
# What the zip module raises for damage, encryption and unknown compression.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class TreeError(ValueError):
    """What was named is no engine; `seen` and `wanted` are for a person."""

    def __init__(self, seen: str, wanted: str) -> None:
        self.seen = seen
        self.wanted = wanted
        super().__init__(f"{seen}; wanted: {wanted}")


class Tree(Protocol):
    """The files of one engine; paths are relative to the package, with `/`."""

    where: str

    def read(self, file: str) -> str | None:
        """Return a file's text, None when there is none; bytes that are no UTF-8 are replaced."""

    def files(self) -> list[str]:
        """Return the path of every Python file, sorted."""

    def metadata(self) -> str | None:
        """Return the text of the distribution's METADATA, None without one."""


class FolderTree:
    """A package folder, such as `…/site-packages/sglang`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.where = str(root)

    def read(self, file: str) -> str | None:
        """Return a file's text, or None."""
        path = self.root / file
        try:
            return path.read_bytes().decode(errors="replace") if path.is_file() else None
        except OSError as error:
            raise TreeError(f"{path}: {error.strerror}", "a file that can be read") from error

    def files(self) -> list[str]:
        """Return the path of every Python file below the folder."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*.py"))

    def metadata(self) -> str | None:
        """Return METADATA of the one distribution beside the folder; of several, none is sure.

        A checkout has a pyproject.toml in its place, with the same requirements and no version.
        """
        found = list(self.root.parent.glob(f"{PACKAGE}-*{METADATA}"))
        if len(found) == 1:
            return found[0].read_text(encoding="utf-8", errors="replace")
        project = self.root.parent / "pyproject.toml"
        return None if found or not project.is_file() else _requirements(project)


def _requirements(project: Path) -> str | None:
    """Return what a pyproject.toml requires, in the words of METADATA; None when it says none."""
    try:
        table = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        lines = [f"Requires-Dist: {requirement}" for requirement in table["dependencies"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return "\n".join(lines)


class WheelTree:
    """A wheel, read where it lies. Raises TreeError for any other file."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except (*ZIP_ERRORS, OSError) as error:
            raise TreeError(f"no zip archive that can be read: {error}", "a wheel") from error
        self._names = frozenset(self._zip.namelist())
        self._metadata = self._whole_metadata()

    def _whole_metadata(self) -> str:
        names = [name for name in self._names if name.endswith(METADATA) and name.count("/") == 1]
        if len(names) != 1:
            raise TreeError("a zip archive, but no wheel: no METADATA", f"a wheel of {PACKAGE}")
        text = self._text(names[0])
        name = HeaderParser().parsestr(text)["Name"]
        if name != PACKAGE:
            raise TreeError(f"a wheel of {name or 'nothing'}", f"a wheel of {PACKAGE}")
        return text

    def _text(self, name: str) -> str:
        try:
            return self._zip.read(name).decode(errors="replace")
        except ZIP_ERRORS as error:
            seen = f"a damaged archive: {name}: {error}"
            raise TreeError(seen, "a whole wheel; download it again") from error

    def read(self, file: str) -> str | None:
        """Return a file's text, or None."""
        name = f"{PACKAGE}/{file}"
        return self._text(name) if name in self._names else None

    def files(self) -> list[str]:
        """Return the path of every Python file of the package."""
        start = f"{PACKAGE}/"
        return sorted(
            name.removeprefix(start)
            for name in self._names
            if name.startswith(start) and name.endswith(".py")
        )

    def metadata(self) -> str | None:
        """Return the wheel's METADATA."""
        return self._metadata


def package_root(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, or None."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def open_tree(path: Path | None) -> Tree:
    """Open a wheel, a folder (unpacked wheel, checkout, or the package), or the installed engine.

    Raises TreeError for anything else.
    """
    if path is None:
        root = package_root(PACKAGE)
        if root is None:
            raise TreeError("not installed", f"{PACKAGE}, or the path of a wheel or a folder")
        return FolderTree(root)
    if not path.is_dir():
        if not path.exists():
            raise TreeError("no such file or folder", f"a wheel or a folder of {PACKAGE}")
        return WheelTree(path)
    for inside in INSIDE:
        if (path / inside / "__init__.py").is_file() and (path / inside / "srt").is_dir():
            return FolderTree(path / inside)
    raise TreeError(f"a folder without {PACKAGE}", f"an unpacked wheel or a checkout of {PACKAGE}")
