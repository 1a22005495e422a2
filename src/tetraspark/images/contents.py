"""What a recipe put into an image: the receipt it wrote, and hashes of what is really there.

This file is also the script that runs in a container of the image (`python3 - FOLDER TREE... <
contents.py`). It needs the standard library of Python 3.11 only. FOLDER has the receipt and the
list of the packages that the recipe installed; TREE are further folders that it filled.

Paths, permission bits, link targets and contents count; times and owners do not, so that what
two daemons built can be compared. Compiled modules (`*.pyc`) do not either: the order of what is
in them varies from one run of the compiler to the next, and their sources are hashed.
"""

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any


def sha256_of(paths: Iterable[Path]) -> str:
    """Return one hash (hex) of files and links, by their absolute paths."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.fsencode(path.readlink())
        elif path.suffix == ".pyc" or not stat.S_ISREG(mode):
            continue
        else:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest().encode()
        digest.update(b"%o %s\0%s\0" % (mode, os.fsencode(path), content))
    return digest.hexdigest()


def package_files(name: str) -> list[Path]:
    """Return the files of an installed package. Raises ValueError when it has no list of them."""
    files = distribution(name).files
    if files is None:
        raise ValueError(f"package {name} has no RECORD")
    return [Path(str(file.locate())).resolve() for file in files if file.suffix != ".pyc"]


def contents(folder: Path, trees: Iterable[Path]) -> dict[str, Any]:
    """Return the receipt, and a hash for each folder and for each package of the recipe."""
    hashes = {str(tree): sha256_of(tree.rglob("*")) for tree in (folder, *trees)}
    for line in (folder / "requirements.txt").read_text().splitlines():
        name = line.partition("==")[0]
        hashes[name] = sha256_of(package_files(name))
    return {"receipt": json.loads((folder / "receipt.json").read_text()), "contents": hashes}


if __name__ == "__main__":
    root, *more = map(Path, sys.argv[1:])
    print(json.dumps(contents(root, more), sort_keys=True))
