"""Why an engine's files cannot be read, for a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from tetraspark.engine.metadata import printable

DOWNLOAD = "pip download --no-deps sglang==0.5.23"
LONGEST_SEEN = 600


class TreeError(ValueError):
    """What was named is no engine; `seen`, `wanted` and `fix` are for a person."""

    def __init__(self, seen: str, wanted: str, fix: str = DOWNLOAD) -> None:
        self.seen = printable(seen, LONGEST_SEEN)
        self.wanted = wanted
        self.fix = fix
        super().__init__(f"{self.seen}; wanted: {wanted}")


def look_at(path: str | Path) -> str:
    """Return the command that shows what a path is, and who may read it."""
    return f"ls -ld {quote(str(path))}"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise what the system says of a path as a TreeError."""
    try:
        yield
    except OSError as error:
        file = error.filename or path
        seen = f"{file}: {error.strerror or error}"
        raise TreeError(seen, "a file or folder that can be read", look_at(file)) from error


@contextmanager
def unpacking(name: str = "") -> Iterator[None]:
    """Raise what the zip module says of a wheel, or of one file in it, as a TreeError.

    Damage reaches any part of it, its decompressors, decoders and the system's seek included, and
    each part raises errors of its own.
    """
    try:
        yield
    except TreeError:
        raise
    except Exception as error:
        what = f"{name}: " if name else ""
        seen = f"a damaged archive: {what}{error or type(error).__name__}"
        raise TreeError(seen, "a whole wheel; download it again") from error
