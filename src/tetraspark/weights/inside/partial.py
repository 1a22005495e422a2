"""The folder that a copy is received in: make it, put what arrived whole in place, drop the rest.

Runs on the node with `python3 -I -`, from stdin. REQUEST is put in by the sender. Nothing but the
named files of the copy is ever replaced or removed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

REQUEST = "{}"


def inside(folder: Path, name: str) -> Path:
    """Return a file below the folder. Raises ValueError for a name that leads out of it."""
    if name.startswith("/") or ".." in Path(name).parts:
        raise ValueError(f"leads out of the folder: {name}")
    return folder / name


def prepare(partial: Path) -> dict[str, Any]:
    """Make the folders; return the names of what is there of an earlier copy."""
    if partial.is_symlink():
        raise ValueError(f"a symbolic link: {partial}")
    partial.mkdir(parents=True, exist_ok=True)
    return {"left": [str(one.relative_to(partial)) for one in partial.rglob("*") if one.is_file()]}


def place(partial: Path, names: list[str]) -> None:
    """Move files to where they belong, each in one step, and remove what is empty then."""
    for name in names:
        target = inside(partial.parent, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        source = inside(partial, name)
        with source.open("rb") as file:
            os.fsync(file.fileno())
        source.replace(target)
    below = sorted((one for one in partial.rglob("*") if one.is_dir()), reverse=True)
    for folder in (*below, partial):
        if not any(folder.iterdir()):
            folder.rmdir()


def main(request: dict[str, Any]) -> None:
    """Do what is asked, or print why not."""
    partial = Path(request["partial"])
    try:
        if request["action"] == "prepare":
            print(json.dumps(prepare(partial)))
            return
        if request["action"] == "place":
            place(partial, request["names"])
        else:
            for name in request["names"]:
                inside(partial, name).unlink(missing_ok=True)
        print(json.dumps({"done": request["action"]}))
    except (OSError, ValueError) as error:
        print(json.dumps({"error": str(error)}))


if __name__ == "__main__":
    main(json.loads(REQUEST))
