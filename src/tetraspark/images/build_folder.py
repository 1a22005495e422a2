"""The folder of a context on this machine while it is built, one build of a line at a time."""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

from tetraspark.errors import Problem, RunError
from tetraspark.images.cache import Cache
from tetraspark.images.context import BuildContext, write_context


@contextlib.contextmanager
def written(context: BuildContext, cache: Cache, line: str) -> Iterator[Path]:
    """Write a context beside the cache, and remove it afterwards.

    Beside the cache and not in the folder for temporary files: it holds gigabytes. Raises
    RunError when another build of the line is at work, and as `write_context` does.
    """
    home = cache.folder.parent / "contexts"
    home.mkdir(parents=True, exist_ok=True)
    with (home / f"{line}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            seen = "another `tetraspark build` of this line is at work"
            raise RunError(Problem(str(home), seen, "one at a time", "wait for it")) from error
        folder = home / line
        _remove(folder)
        try:
            write_context(context, folder)
            yield folder
        finally:
            _remove(folder)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
