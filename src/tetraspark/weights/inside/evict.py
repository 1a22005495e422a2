"""Give the memory of a folder's files in the page cache back; print what was free before and after.

Runs on the node with `python3 -I -`, from stdin, as the login: no root is needed, for only pages
that are on the disk as well are given back. REQUEST is put in by the sender.
"""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

REQUEST = "{}"
HOME = pwd.getpwuid(os.getuid()).pw_dir
NAMES = ("MemTotal", "MemFree", "MemAvailable", "Cached")


def memory() -> dict[str, int]:
    """Return lines of /proc/meminfo, in bytes."""
    rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {row[0][:-1]: int(row[1]) * 1024 for row in rows if row[0][:-1] in NAMES}


def evict(path: Path) -> int:
    """Drop a file's pages from the cache, written to the disk first; return the file's size."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def main(request: dict[str, Any]) -> None:
    """Evict every file of the folder."""
    path = request["folder"]
    folder = Path(HOME + path[1:] if path == "~" or path.startswith("~/") else path)
    before, files, size, errors = memory(), 0, 0, {}
    for one in sorted(folder.rglob("*")):
        try:
            if one.is_file():
                size += evict(one)
                files += 1
        except OSError as error:
            errors[str(one)] = error.strerror
    found = {"folder": str(folder), "exists": folder.is_dir(), "files": files, "bytes": size}
    print(json.dumps({**found, "before": before, "after": memory(), "errors": errors}))


if __name__ == "__main__":
    main(json.loads(REQUEST))
