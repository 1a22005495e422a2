"""Runs a Python program in namespaces of its own: no network, no files but Python's, few powers.

unshare of util-linux makes the namespaces, `inside/enter.py` builds what is seen in them. As an
ordinary user that happens in a user namespace; as root, powers are enough for it, and the program
runs as a user id that nobody else has.
"""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError

MIB = 1 << 20
OWN = "/tmp"
"""The one folder that the program may write to; it is not the host's."""
NAMESPACES = ("--net", "--pid", "--ipc", "--uts", "--mount", "--fork", "--kill-child")
ID_MAP = Path("/proc/self/uid_map")
# Below 2**31, and above all that systemd gives to containers: uids in nobody's use.
FIRST_UID, UIDS = 2_000_000_000, 100_000_000
SPARE_SECONDS = 5.0


@dataclass(frozen=True)
class Limits:
    """What one program may use: seconds of wall and CPU, bytes, and counts at once.

    `memory` and `cpu_seconds` are of each of its processes, `file` of each of its files.
    """

    seconds: float = 10.0
    cpu_seconds: int = 5
    memory: int = 256 * MIB
    file: int = MIB
    room: int = 16 * MIB
    files: int = 64
    processes: int = 8

    def of_process(self) -> dict[str, int]:
        """Return them by the names of setrlimit(2). FSIZE bounds what is told, too."""
        return {
            "RLIMIT_AS": self.memory,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_FSIZE": self.file,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_NPROC": self.processes,
        }


DEFAULT = Limits()


@dataclass(frozen=True)
class Ran:
    """What a program wrote to its standard output, and whether its time ran out."""

    output: str
    late: bool


def program(name: str) -> str:
    """Return the text of a program of the folder `inside`."""
    folder = files("tetraspark.measure.quality.inside")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


def run_inside(text: str, request: Mapping[str, Any], limits: Limits = DEFAULT) -> Ran:
    """Run a program in a new sandbox with a request as JSON on its standard input.

    It says nothing about whether the sandbox holds: `prove` does. Raises RunError when the sandbox
    cannot be built; the program has not run then.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        seen, fix = "unshare is not there", "sudo apt-get install util-linux"
        raise RunError(Problem("sandbox", seen, "unshare of util-linux", fix))
    rooted = _is_root()
    with contextlib.ExitStack() as held:
        place = held.enter_context(tempfile.TemporaryDirectory(prefix="tetraspark-sandbox-"))
        asked, output, said = (held.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        asked.write(json.dumps(request).encode())
        asked.seek(0)
        told = _description(place, text, limits, rooted)
        user = () if rooted else ("--user", "--map-root-user")
        enter = (sys.executable, "-I", "-S", "-c", program("enter"), json.dumps(told))
        process = subprocess.Popen(
            (unshare, *user, *NAMESPACES, *enter),
            stdin=asked,
            stdout=output,
            stderr=said,
            env={"PATH": os.defpath},
            cwd="/",
            start_new_session=True,
        )
        late = _wait(process, limits.seconds)
        output.seek(0)
        said.seek(0)
        reason = said.read(2000).decode(errors="replace").strip()
        if not late and process.returncode:
            raise _unbuilt(process.returncode, reason, rooted)
        return Ran(output.read(limits.file).decode(errors="replace"), late)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end, or make it: with unshare its child dies, process 1, and all with it."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    finally:
        process.kill()
        process.wait()
    return False


def _description(place: str, text: str, limits: Limits, rooted: bool) -> dict[str, Any]:
    return {
        "place": place,
        "shown": _shown(),
        "room": limits.room,
        "uid": FIRST_UID + secrets.randbelow(UIDS) if rooted else None,
        "limits": limits.of_process(),
        "seconds": limits.seconds + SPARE_SECONDS,
        "python": str(_python()),
        "program": text,
    }


def _python() -> Path:
    """Return the interpreter itself: a virtual environment would bring its packages."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.base_prefix) / "bin" / name


def _shown() -> list[str]:
    """Return the paths of the host that the sandbox shows: the interpreter and its libraries."""
    wanted = ["/usr", "/lib", "/lib64", "/bin", sys.base_prefix, sys.base_exec_prefix]
    found = [path for path in dict.fromkeys(wanted) if Path(path).exists()]
    covered = [path for path in found if not path.startswith("/usr/")]
    cache = "/etc/ld.so.cache"
    return [*covered, *([cache] if Path(cache).exists() else [])]


def _is_root() -> bool:
    """Tell whether this is root, and can become other users: in a user namespace it may not."""
    if os.geteuid():
        return False
    for line in ID_MAP.read_text(encoding="ascii").splitlines():
        first, _, count = map(int, line.split())
        if first <= FIRST_UID and first + count >= FIRST_UID + UIDS:
            return True
    return False


def _unbuilt(code: int, reason: str, rooted: bool) -> RunError:
    seen = f"it cannot be built ({code}): {reason[-300:] or 'no reason given'}"
    if rooted:
        wanted, fix = (
            "the right to make namespaces and mounts",
            "tetraspark quality --url URL outside of a container",
        )
    else:
        wanted, fix = (
            "user namespaces for ordinary users",
            "sudo -E tetraspark quality, or from another machine with --url",
        )
    return RunError(Problem("sandbox", seen, wanted, fix))
