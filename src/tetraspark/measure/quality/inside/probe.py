"""Tries to get out of the sandbox in every way it was built against, and tells what worked.

Reads {"ports", "canaries", "folders", "pid", "processes", "room", "memory"} from stdin; writes
{"tried": [...], "escaped": {name: what}} to stdout.
"""

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Asked = Mapping[str, Any]
OUTSIDE = "192.0.2.1"  # RFC 5737: nobody's. Only whether there is a way to it is asked.
CLONE_NEWUSER = 0x10000000
MINE = "tetraspark-probe"
KNOWN = {"PATH", "LC_ALL", "LC_CTYPE"}


def connect(kind: socket.SocketKind, address: tuple[str, int]) -> str | None:
    """Tell whether a socket finds a way to an address; silence means that there is one."""
    with socket.socket(socket.AF_INET, kind) as one:
        one.settimeout(0.5)
        try:
            one.connect(address)
            if kind == socket.SOCK_DGRAM:
                one.send(b"out")
        except TimeoutError:
            pass
        except OSError:
            return None
    return f"a way to {address[0]}:{address[1]}"


def tcp_loopback(asked: Asked) -> str | None:
    """Reach a listener of the invoker on the host's loopback."""
    return connect(socket.SOCK_STREAM, ("127.0.0.1", asked["ports"][0]))


def udp_loopback(asked: Asked) -> str | None:
    """Send to a datagram socket of the invoker on the host's loopback."""
    return connect(socket.SOCK_DGRAM, ("127.0.0.1", asked["ports"][1]))


def tcp_outside(asked: Asked) -> str | None:
    """Reach an address elsewhere."""
    return connect(socket.SOCK_STREAM, (OUTSIDE, 80))


def udp_outside(asked: Asked) -> str | None:
    """Send a datagram elsewhere."""
    return connect(socket.SOCK_DGRAM, (OUTSIDE, 53))


def abstract_socket(asked: Asked) -> str | None:
    """Reach a socket of the invoker that has no file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        try:
            one.connect("\0" + asked["abstract"])
        except OSError:
            return None
    return "a socket of the host"


def read_files(asked: Asked) -> str | None:
    """Read a file of the invoker's."""
    for path in asked["canaries"]:
        try:
            return f"read {path}: {len(Path(path).read_bytes())} bytes"
        except OSError:
            continue
    return None


def write_files(asked: Asked) -> str | None:
    """Write anywhere but in the own folder."""
    for folder in asked["folders"]:
        path = f"{folder}/{MINE}"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            Path(path).unlink()
        except OSError:
            continue
        return f"wrote {path}"
    return None


def see_processes(asked: Asked) -> str | None:
    """See a process that is not the sandbox's."""
    with contextlib.suppress(OSError):
        others = [one.name for one in Path("/proc").iterdir() if one.name.isdigit()]
        if others:
            return f"processes {others[:5]} in /proc"
    if os.getppid() != 1:
        return f"parent process {os.getppid()}"
    for pid in (asked["pid"], *range(8, 2000)):
        if pid in (1, os.getpid()):
            continue
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        except PermissionError:
            return f"process {pid} is there"
        return f"process {pid} could be ended"
    return None


def gain_powers(asked: Asked) -> str | None:
    """Do what only a privileged process may."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) == 0:
        return "made a user namespace"
    # Whoever may mount is told that there is no such kind; nothing is mounted in any case.
    libc.mount(b"none", b"/tmp", b"no-such-kind", 0, None)
    if ctypes.get_errno() != errno.EPERM:
        return "may mount file systems"
    with contextlib.suppress(OSError):
        os.chroot("/tmp")
        return "changed its root"
    return None


def see_environment(asked: Asked) -> str | None:
    """Find a variable of the invoker's."""
    names = set(os.environ) - KNOWN
    return f"variables {sorted(names)[:5]}" if names else None


def use_memory(asked: Asked) -> str | None:
    """Get more memory than is allowed."""
    try:
        held = bytearray(asked["memory"] + 1)
    except MemoryError:
        return None
    return f"{len(held)} bytes of memory"


def keep_memory(asked: Asked) -> str | None:
    """Get memory that no process holds: of System V, or a file without a name."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.shmget(0, ctypes.c_size_t(4096), 0o1600) >= 0:
        return "shared memory of System V"
    if libc.msgget(0, 0o1600) >= 0 or libc.semget(0, 1, 0o1600) >= 0:
        return "a queue or a semaphore of System V"
    with contextlib.suppress(OSError):
        os.close(os.memfd_create(MINE))
        return "a file in memory"
    return None


def fill_disk(asked: Asked) -> str | None:
    """Write more than there is room for."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    paths: list[Path] = []
    block = b"x" * (1 << 20)
    try:
        for number in range(2 + asked["room"] // len(block)):
            paths.append(Path("/tmp", f"{MINE}-{number}"))
            with paths[-1].open("xb") as file:
                file.write(block)
    except OSError:
        return None
    finally:
        for path in paths:
            with contextlib.suppress(OSError):
                path.unlink()
    return f"wrote {len(paths)} MiB"


def fork_many(asked: Asked) -> str | None:
    """Start more processes than are allowed."""
    children: list[int] = []
    try:
        while len(children) <= asked["processes"]:
            child = os.fork()
            if not child:
                time.sleep(5)
                os._exit(0)
            children.append(child)
    except OSError:
        return None
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"started {len(children)} processes"


ATTEMPTS = (
    tcp_loopback,
    udp_loopback,
    tcp_outside,
    udp_outside,
    abstract_socket,
    read_files,
    write_files,
    see_processes,
    gain_powers,
    see_environment,
    use_memory,
    keep_memory,
    fill_disk,
    fork_many,
)


def main() -> None:
    """Try everything."""
    asked = json.load(sys.stdin)
    found = {attempt.__name__: attempt(asked) for attempt in ATTEMPTS}
    escaped = {name: what for name, what in found.items() if what}
    print(json.dumps({"tried": sorted(found), "escaped": escaped}))


if __name__ == "__main__":
    main()
