"""An engine's files as text: of a wheel, a folder, or the installed package.

Nothing is imported, unpacked or run: a wheel that could not be installed here is read as well as
any other.
"""

import importlib.util
import stat
import zipfile
from pathlib import Path
from typing import Protocol

from tetraspark.engine.metadata import named, printable, project_metadata
from tetraspark.engine.tree_error import TreeError as TreeError
from tetraspark.engine.tree_error import look_at, reading, unpacking

PACKAGE = "sglang"
METADATA = ".dist-info/METADATA"
# Relative to what a person names: the package itself, what holds it, a checkout of the sources.
INSIDE = ("", PACKAGE, f"python/{PACKAGE}")
# Many times the largest file of the engine: what is larger is not read.
MEMBER_BYTES = 16 << 20


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
        self.where = printable(str(root), 4096)

    def read(self, file: str) -> str | None:
        """Return a file's text, or None."""
        path = self.root / file
        with reading(path):
            return _text(path) if path.is_file() else None

    def files(self) -> list[str]:
        """Return the path of every Python file below the folder."""
        with reading(self.root):
            return sorted(
                path.relative_to(self.root).as_posix() for path in self.root.rglob("*.py")
            )

    def metadata(self) -> str | None:
        """Return METADATA of the one distribution beside the folder; of several, none is sure.

        A checkout has a pyproject.toml in its place, with the same requirements and no version.
        """
        beside = self.root.resolve().parent
        with reading(beside):
            texts = [_text(path) for path in beside.glob(f"*{METADATA}") if _may_be_ours(path)]
            found = [text for text in texts if named(text) == PACKAGE]
            if found:
                return found[0] if len(found) == 1 else None
            project = beside / "pyproject.toml"
            return project_metadata(_text(project), PACKAGE) if project.is_file() else None


def _may_be_ours(metadata: Path) -> bool:
    """Tell by a folder's name, so that the METADATA of a whole site-packages is not read."""
    return metadata.parent.name.lower().startswith(f"{PACKAGE}-")


def _text(path: Path) -> str:
    if not path.is_file():
        raise TreeError(f"{path}: not a regular file", "METADATA", look_at(path))
    with path.open("rb") as file:
        data = file.read(MEMBER_BYTES + 1)
    if len(data) > MEMBER_BYTES:
        wanted = f"files of {MEMBER_BYTES} bytes at most"
        raise TreeError(f"{path} is larger", wanted, look_at(path))
    return data.decode(errors="replace")


class WheelTree:
    """A wheel, read where it lies. Raises TreeError for any other file."""

    def __init__(self, path: Path) -> None:
        self.where = printable(str(path), 4096)
        with reading(path), path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise TreeError("no zip archive", "a wheel")
        with unpacking():
            self._zip = zipfile.ZipFile(path)
        self._names = frozenset(self._zip.namelist())
        self._metadata = self._whole_metadata()

    def _whole_metadata(self) -> str:
        names = [n for n in self._zip.namelist() if n.endswith(METADATA) and n.count("/") == 1]
        if not names:
            raise TreeError("a zip archive, but no wheel: no METADATA", f"a wheel of {PACKAGE}")
        if len(names) > 1:
            seen = f"{len(names)} METADATA files: {', '.join(sorted(names))}"
            raise TreeError(seen, "a wheel of one distribution")
        text = self._text(names[0])
        name = named(text)
        if name != PACKAGE:
            raise TreeError(f"a wheel of {name or 'nothing'}", f"a wheel of {PACKAGE}")
        return text

    def _text(self, name: str) -> str:
        with unpacking(name):
            size = self._zip.getinfo(name).file_size
            if size > MEMBER_BYTES:
                wanted = f"files of {MEMBER_BYTES} bytes at most"
                raise TreeError(f"{name} is {size} bytes", wanted)
            return self._zip.read(name).decode(errors="replace")

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


def open_tree(path: str | Path | None) -> Tree:
    """Open a wheel, a folder (unpacked wheel, checkout, or the package), or the installed engine.

    Raises TreeError for anything else.
    """
    if path is None:
        root = package_root(PACKAGE)
        if root is None:
            raise TreeError("not installed", f"{PACKAGE}, or the path of a wheel or a folder")
        return FolderTree(root)
    if not str(path):
        raise TreeError("no path", f"a wheel or a folder of {PACKAGE}")
    with reading(Path(path)):
        return _open_named(Path(path))


def _open_named(path: Path) -> Tree:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TreeError("no such file or folder", f"a wheel or a folder of {PACKAGE}") from error
    if stat.S_ISREG(mode):
        return WheelTree(path)
    if not stat.S_ISDIR(mode):
        # To open a pipe is to wait for its writer.
        wanted = f"a wheel or a folder of {PACKAGE}"
        raise TreeError("not a regular file", wanted, look_at(path))
    for inside in INSIDE:
        if (path / inside / "__init__.py").is_file() and (path / inside / "srt").is_dir():
            return FolderTree(path / inside)
    raise TreeError(f"a folder without {PACKAGE}", f"an unpacked wheel or a checkout of {PACKAGE}")
