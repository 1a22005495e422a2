"""Look at a node: read files, resolve links, ask programs; print all of it as one JSON object.

Runs on the node with `python3 -I -`, from stdin, so it needs the standard library alone and
imports nothing of the package. REQUEST stands for a JSON object and is put in by the sender.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import pwd
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

REQUEST = "{}"
MAX_BYTES = 65536
MAX_HEADER = 100_000_000
OFFSETS = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]')
SECONDS = 9.0
LISTEN = "0A"


def home() -> str:
    """Return the login's home folder."""
    return pwd.getpwuid(os.getuid()).pw_dir


def expanded(path: str) -> str:
    """Return a path with the login's home in place of a leading `~`."""
    return home() + path[1:] if path == "~" or path.startswith("~/") else path


def matches(pattern: str) -> list[Path]:
    """Return the paths of a glob, in order."""
    return [Path(path) for path in sorted(glob.glob(expanded(pattern)))]  # noqa: PTH207 absolute


def regular(patterns: list[str]) -> list[Path]:
    """Return the files of globs, in order; to open a pipe or a device is to wait, or worse."""
    paths = (path for pattern in patterns for path in matches(pattern))
    return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 a Path raises


def texts(patterns: list[str]) -> dict[str, str]:
    """Return the beginning of each file that can be read, by path."""
    found = {}
    for path in regular(patterns):
        with contextlib.suppress(OSError), path.open("rb") as file:
            found[str(path)] = file.read(MAX_BYTES).decode("utf-8", "replace")
    return found


def sizes(patterns: list[str]) -> dict[str, int]:
    """Return the size of each regular file, by path."""
    found = {}
    for path in regular(patterns):
        with contextlib.suppress(OSError):
            found[str(path)] = path.stat().st_size
    return found


def declared(patterns: list[str]) -> dict[str, int]:
    """Return the size that each safetensors file says it has, by path.

    8 bytes of the header's length, the header, and the tensors to the last one's end
    (the format of safetensors 0.4); a file whose header cannot be read is left out.
    """
    found = {}
    for path in regular(patterns):
        with contextlib.suppress(OSError, ValueError, MemoryError), path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = file.read(length) if length <= MAX_HEADER else b""
            ends = [int(end) for end in OFFSETS.findall(header)]
            if len(header) == length and header.startswith(b"{"):
                found[str(path)] = 8 + length + max(ends, default=0)
    return found


def space(path: str) -> dict[str, Any]:
    """Return the room of the file system that a path is on, or would be."""
    full = Path(expanded(path)).absolute()
    while not os.path.isdir(full):  # noqa: PTH112 a Path raises
        full = full.parent
    room = os.statvfs(full)
    total, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    return {"path": str(full), "total": total, "free": free}


def listeners(ports: set[int]) -> dict[int, str]:
    """Return who listens on each of the ports that is taken."""
    sockets: dict[int, set[str]] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for row in map(str.split, Path(table).read_text().splitlines()[1:]):
                port = int(row[1].rsplit(":", 1)[1], 16)
                if row[3] == LISTEN and port in ports:
                    sockets.setdefault(port, set()).add(f"socket:[{row[9]}]")
    return {port: holder(names) for port, names in sockets.items()}


def holder(names: set[str]) -> str:
    """Name a process that has one of the sockets open, or ""."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for handle in (process / "fd").iterdir():
                if os.readlink(handle) in names:  # noqa: PTH115 a Path costs much here
                    name = (process / "comm").read_text().strip()
                    return f"pid {process.name} ({name})"
    return ""


def said(argv: list[str]) -> dict[str, Any]:
    """Run a command that only reads, and return how it ended."""
    path = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path}
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=environment,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"rc": 124, "stdout": "", "stderr": f"no end after {SECONDS:g} s"}
    except OSError as error:
        return {"rc": 127, "stdout": "", "stderr": f"{argv[0]}: {error.strerror}"}
    output, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return {"rc": done.returncode, "stdout": output, "stderr": errors}


def came_in_on() -> str:
    """Return this machine's end of the ssh connection that started the program, or ""."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else ""


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Return all that was asked for."""
    names = list(request["commands"])
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(said, [request["commands"][name] for name in names]))
    links = (path for pattern in request["links"] for path in matches(pattern))
    return {
        "home": home(),
        "uid": os.getuid(),
        "ssh": came_in_on(),
        "time": time.time(),
        "files": texts(request["files"]),
        "links": {str(path): os.path.realpath(path) for path in links},
        "sizes": sizes(request["sizes"]),
        "globs": {one: [str(path) for path in matches(one)] for one in request["sizes"]},
        "declared": declared(request["shards"]),
        "space": {path: space(path) for path in request["space"]},
        "listeners": listeners(set(request["ports"])),
        "commands": dict(zip(names, ends)),  # noqa: B905 not in Python 3.9
    }


if __name__ == "__main__":
    json.dump(look(json.loads(REQUEST)), sys.stdout)
