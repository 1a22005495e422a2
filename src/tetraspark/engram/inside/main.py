"""The program: pack or verify the shards of one rank; its request is one JSON object."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.events import tell
from tetraspark.engram.inside.pack import pack
from tetraspark.engram.inside.plan import shard_of
from tetraspark.engram.inside.refusal import Refusal
from tetraspark.engram.inside.source import Checkpoint
from tetraspark.engram.inside.verify import sample, verify

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def work(request: dict[str, Any]) -> None:
    """Do what is asked. Raises Refusal, OSError."""
    folder = Path(request["folder"]).expanduser()
    if request["mode"] == "sample":
        sample(folder, request["names"])
        return
    checkpoint = Checkpoint(Path(request["model"]).expanduser())
    shards = [shard_of(checkpoint, folder, asked) for asked in request["shards"]]
    if request["mode"] == "verify":
        verify(shards)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        pack(shards, request["samples"], request["replace"])


def main(text: str) -> int:
    """Do what is asked; return the exit code."""
    try:
        work(json.loads(text))
        tell("end")
    except Refusal as refusal:
        tell("problem", **refusal.problem)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        tell("problem", **_problem(error))
        return 1
    return 0


def _problem(error: OSError) -> dict[str, str]:
    where, seen = str(error.filename or "the node"), error.strerror or str(error)
    if error.errno in FULL:
        wanted = "room; what is packed stays, and the same command goes on from there"
        return {"where": where, "seen": seen, "wanted": wanted, "fix": "df -h; ulimit -f"}
    wanted = "a file or folder that this login can use"
    return {"where": where, "seen": seen, "wanted": wanted, "fix": _fix(error, Path(where))}


def _fix(error: OSError, path: Path) -> str:
    """Name what can be typed: nothing can be listed that is not there."""
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        file = next((one for one in (path, *path.parents) if one.is_file()), path)
        return f"a file is there, {file}: name a folder"
    there = next((one for one in (path, *path.parents) if os.path.lexists(one)), path)
    return f"ls -ld {shlex.quote(str(there))}"
