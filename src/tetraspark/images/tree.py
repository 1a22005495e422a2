"""The hash of a folder: paths, modes and contents; times and owners do not count.

This file is also the script that a node runs (`python3 - FOLDER < tree.py`), so both ends compute
the same thing. It needs the standard library of Python 3.9 only.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

Entry = tuple[str, int, str]
"""Path below the folder with `/`, permission bits, sha256 (hex)."""
CHUNK = 1 << 20


def sha256_of_entries(entries: Iterable[Entry]) -> str:
    """Return the tree hash (hex) of some files, in whatever order they come."""
    digest = hashlib.sha256()
    for path, mode, sha256 in sorted(entries):
        digest.update(b"%o %s %s\0" % (mode & 0o777, sha256.encode(), os.fsencode(path)))
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the sha256 (hex) of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(CHUNK), b""):
            digest.update(block)
    return digest.hexdigest()


def entries_of(folder: Path) -> list[Entry]:
    """Return every file below a folder.

    Raises ValueError for a link, a device or a socket, and OSError for what cannot be read:
    a hash that leaves something out would vouch for it all the same.
    """
    found = []
    for root, folders, files in os.walk(folder, onerror=_raise):
        for path in (Path(root, name) for name in folders + files):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                found.append((path.relative_to(folder).as_posix(), mode & 0o777, file_sha256(path)))
            elif not stat.S_ISDIR(mode):
                raise ValueError(f"{path} is neither a file nor a folder")
    return found


def tree_sha256(folder: Path) -> str:
    """Return the hash (hex) of a folder; empty folders do not count. Raises as `entries_of`."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    return sha256_of_entries(entries_of(folder))


def _raise(error: OSError) -> NoReturn:
    raise error


if __name__ == "__main__":
    try:
        print(tree_sha256(Path(sys.argv[1])))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
