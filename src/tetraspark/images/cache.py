"""The cache of verified files: each is named by the sha256 of its bytes."""

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

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
    """

    folder: Path

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
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix="add-", delete=False) as file:
                file.write(content)
            self.keep(Path(file.name), sha256)
        return sha256

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
