"""The folder of a context on this machine while it is built, one build of a line at a time."""

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tetraspark.errors import Problem, RunError
from tetraspark.images.cache import Cache
from tetraspark.images.context import BuildContext, write_context


def context_folder(cache: Cache, line: str) -> Path:
    """Return where a line's context is written: beside the cache, for it holds gigabytes."""
    return cache.folder.parent / "contexts" / line


@contextlib.contextmanager
def thrown_away(cache: Cache) -> Iterator[Cache]:
    """Show a cache's files in one of a moment; what is put in it never gets to the cache."""
    with tempfile.TemporaryDirectory(prefix="tetraspark-") as folder:
        for path in cache.files():
            (Path(folder) / path.name).symlink_to(path.absolute())
        yield Cache(Path(folder))


@contextlib.contextmanager
def written(context: BuildContext, cache: Cache, line: str) -> Iterator[Path]:
    """Write a context to its folder, and remove it afterwards.

    Raises RunError when another build of the line is at work, and as `write_context` does.
    """
    folder = context_folder(cache, line)
    home = folder.parent
    home.mkdir(parents=True, exist_ok=True)
    with (home / f"{line}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            seen = "another `tetraspark build` of this line is at work"
            raise RunError(Problem(str(home), seen, "one at a time", "wait for it")) from error
        _remove(folder)
        try:
            write_context(context, folder)
            yield folder
        finally:
            _remove(folder)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
