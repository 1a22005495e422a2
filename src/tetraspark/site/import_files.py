"""The files an import writes: all of them or none, and never over what it reads."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path

from tetraspark.errors import Problem, UsageError

_OTHER_NAME = "choose another name"


@dataclass(frozen=True)
class NewFile:
    """A file to write: its text (hidden in a repr: it may be a key) and its mode."""

    path: Path
    text: str = field(repr=False)
    mode: int


def refuse_clashes(source: Path, targets: Sequence[Path]) -> None:
    """Raise UsageError if a target is the file that is read, or another target, by any name."""
    problems = [
        Problem(str(path), "the file that is imported", "another file to write", _OTHER_NAME)
        for path in targets
        if _same(path, source)
    ]
    for path, other in combinations(targets, 2):
        if _same(path, other):
            seen, wanted = "the name of two files to write", "one name for each"
            problems.append(Problem(str(path), seen, wanted, "choose another --key-file"))
    if problems:
        raise UsageError(*problems)


def refuse_existing(targets: Sequence[Path], *, force: bool) -> None:
    """Raise UsageError for targets that exist; `force` allows plain files, and nothing else."""
    problems = []
    for path in targets:
        # a name too long to exist is for the writer to report
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or not path.is_file():
            kind = "a symbolic link" if path.is_symlink() else "not a plain file"
            problems.append(Problem(str(path), kind, "a plain file or none", _OTHER_NAME))
        elif not force:
            fix = "add --force, or choose another name"
            problems.append(Problem(str(path), "the file exists", "a new file", fix))
    if problems:
        raise UsageError(*problems)


def write_all(files: Sequence[NewFile]) -> None:
    """Write every file, or none: on UsageError each path holds what it held before."""
    with ExitStack() as leftovers, ExitStack() as undo:
        staged = []
        for file in files:
            with _reported(file.path):
                staged.append(_stage(file, leftovers))
        for file, new in zip(files, staged, strict=True):
            with _reported(file.path):
                undo.callback(_way_back(file.path, leftovers))
                new.replace(file.path)
        undo.pop_all()


def _stage(file: NewFile, leftovers: ExitStack) -> Path:
    new = _temporary(file.path.parent, leftovers)
    new.write_text(file.text, encoding="utf-8")
    new.chmod(file.mode)
    return new


def _way_back(path: Path, leftovers: ExitStack) -> Callable[[], object]:
    """Return what undoes the writing of a path."""
    if not os.path.lexists(path):
        return partial(_remove, path)
    copy = _temporary(path.parent, leftovers)
    shutil.copy2(path, copy)
    return partial(copy.replace, path)


def _temporary(folder: Path, leftovers: ExitStack) -> Path:
    # readable by its owner alone from its first byte on
    handle, name = tempfile.mkstemp(prefix=".tetraspark-", dir=folder)
    os.close(handle)
    leftovers.callback(_remove, Path(name))
    return Path(name)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _same(path: Path, other: Path) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    with suppress(OSError):
        return path.samefile(other)
    return False


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        seen = f"cannot be written: {error.strerror}"
        raise UsageError(
            Problem(str(path), seen, "a writable file", "choose a writable place")
        ) from None
