"""List the files of a folder, and hash them; print progress and at last the tally, as JSON lines.

Runs on the node with `python3 -I -`, from stdin. REQUEST stands for a JSON object and is put in
by the sender. Hashes are kept in ~/.cache/tetraspark by size, time and inode of the file, so a
run that is cut off goes on where it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

REQUEST = "{}"
CHUNK = 8 << 20
THREADS = 4
TELL_SECONDS = 1.0
HOME = pwd.getpwuid(os.getuid()).pw_dir


class Sums:
    """The hashes that were computed before, by device and inode, so that a rename keeps them."""

    def __init__(self, full: bool) -> None:
        self.path = Path(HOME, ".cache/tetraspark/weights.sha256.json")
        self.lock = threading.Lock()
        self.full = full

    def load(self) -> dict[str, list[Any]]:
        """Return all entries: size, time in ns, hash."""
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self.path.read_text())
            return found if isinstance(found, dict) else {}
        return {}

    def known(self, state: os.stat_result) -> str | None:
        """Return the hash of a file that is as it was when it was hashed."""
        entry = None if self.full else self.load().get(f"{state.st_dev}:{state.st_ino}")
        if isinstance(entry, list) and entry[:2] == [state.st_size, state.st_mtime_ns]:
            return str(entry[2])
        return None

    def keep(self, state: os.stat_result, digest: str) -> None:
        """Keep a hash, in one step for whoever reads; without a cache to write to, keep nothing."""
        with self.lock, contextlib.suppress(OSError):
            entry = [state.st_size, state.st_mtime_ns, digest]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps({**self.load(), f"{state.st_dev}:{state.st_ino}": entry}))
            part.replace(self.path)


class Tally:
    """Hashes files and tells how far it is."""

    def __init__(self, total: int, sums: Sums) -> None:
        self.total = total
        self.sums = sums
        self.done = 0
        self.cached: list[str] = []
        self.lock = threading.Lock()
        self.told = 0.0

    def file(self, path: Path) -> dict[str, Any]:
        """Return size and hash of a file, or why there is none."""
        try:
            with path.open("rb") as file:
                before = os.fstat(file.fileno())
                known = self.sums.known(before)
                if known is not None:
                    self.cached.append(path.name)
                    self.add(before.st_size, path.name)
                    return {"size": before.st_size, "sha256": known}
                digest = hashlib.sha256()
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
                    self.add(len(chunk), path.name)
                after = os.fstat(file.fileno())
                # What was read once is not read again soon, and this memory is the GPU's too.
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            return {"size": 0, "error": error.strerror or str(error)}
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return {"size": after.st_size, "error": "changed while it was read"}
        self.sums.keep(after, digest.hexdigest())
        return {"size": after.st_size, "sha256": digest.hexdigest()}

    def add(self, count: int, name: str) -> None:
        """Count bytes, and tell of them once a second: a reader that is gone ends the run."""
        with self.lock:
            self.done += count
            if time.monotonic() - self.told >= TELL_SECONDS:
                self.told = time.monotonic()
                say({"done": self.done, "total": self.total, "text": name})


def say(line: dict[str, Any]) -> None:
    """Print a line at once; end at once when nobody reads."""
    try:
        print(json.dumps(line), flush=True)
    except OSError:
        os._exit(1)


def walk(folder: Path) -> dict[str, int]:
    """Return the size of each file, by its name below the folder; hidden ones are left out."""
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.stat().st_size
    return found


def main(request: dict[str, Any]) -> None:
    """Tally the folder, or only the named files of it."""
    path = request["folder"]
    folder = Path(HOME + path[1:] if path == "~" or path.startswith("~/") else path)
    found = walk(folder)
    if request["names"] is not None:
        found = {name: found[name] for name in request["names"] if name in found}
    files: dict[str, Any] = {name: {"size": size} for name, size in found.items()}
    cached = 0
    if request["hash"]:
        tally = Tally(sum(found.values()), Sums(request["full"]))
        with ThreadPoolExecutor(THREADS) as pool:
            sums = list(pool.map(tally.file, [folder / name for name in found]))
        files, cached = dict(zip(found, sums)), len(tally.cached)  # noqa: B905 not in Python 3.9
    say({"folder": str(folder), "exists": folder.is_dir(), "files": files, "cached": cached})


if __name__ == "__main__":
    main(json.loads(REQUEST))
