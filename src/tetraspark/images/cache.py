"""The cache of verified files: each is named by the sha256 of its bytes."""

import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.images.tree import file_sha256


def default_cache() -> Path:
    """Return the folder of the cache: `$XDG_CACHE_HOME/tetraspark/sources`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tetraspark" / "sources"


@dataclass(frozen=True)
class Cache:
    """A folder of files named by their sha256 (hex); made when something is first put in it.

    A file is complete from the moment it has its name; that its bytes are still those is for
    the reader to check: `damaged` does it, and so does whoever copies from here.
    Raises UsageError where something that is no folder is in the way.
    """

    folder: Path

    def __post_init__(self) -> None:
        for path in (self.folder, *self.folder.parents):
            if path.is_dir():
                return
            if os.path.lexists(path):
                fix = f"rm {path}, or set XDG_CACHE_HOME to another folder"
                raise UsageError(Problem(str(path), "not a folder", "the cache's folder", fix))

    def path(self, sha256: str) -> Path:
        """Return where the file of this hash is, or would be."""
        return self.folder / sha256

    def has(self, sha256: str) -> bool:
        """Say whether a file of this name is there (its bytes are not looked at)."""
        return self.path(sha256).is_file()

    def files(self) -> list[Path]:
        """Return every file that is named by a hash, in order; there may be no cache yet."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path for path in found if re.fullmatch(r"[0-9a-f]{64}", path.name))

    def add(self, content: bytes) -> str:
        """Put bytes in the cache; return their sha256 (hex)."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.has(sha256) or self.damaged(sha256):
            with self.writing():
                self.folder.mkdir(parents=True, exist_ok=True)
                descriptor, name = tempfile.mkstemp(dir=self.folder, prefix="add-")
                try:
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(content)
                    self.keep(Path(name), sha256)
                except BaseException:
                    Path(name).unlink(missing_ok=True)
                    raise
        return sha256

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn what the system refuses inside into RunError that names the path and what helps."""
        try:
            yield
        except OSError as error:
            path = str(error.filename2 or error.filename or self.folder)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            fix = f"df -h {self.folder}" if full else f"ls -ld {path}"
            if isinstance(error, IsADirectoryError):
                fix = f"rm -r {path}"
            reason = error.strerror or str(error)
            raise RunError(Problem(path, reason, "a file to read or write", fix)) from error

    def keep(self, part: Path, sha256: str) -> Path:
        """Give a finished temporary file of the cache's folder its name, for good on disk."""
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.chmod(0o644)
        part.replace(self.path(sha256))
        _sync_folder(self.folder)
        return self.path(sha256)

    def damaged(self, sha256: str) -> str:
        """Return the sha256 a file really has when it is not its name's, or nothing."""
        seen = file_sha256(self.path(sha256))
        return seen if seen != sha256 else ""


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
