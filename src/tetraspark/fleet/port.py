"""TCP ports of this machine: free ones, and who holds a taken one."""

import contextlib
import errno
import itertools
import pwd
import random
import socket
from dataclasses import dataclass
from pathlib import Path

FIRST_PORT = 10240
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
TABLES = ("tcp", "tcp6")
"""A listener on `::` is in the second, and takes the port of IPv4 addresses too."""


def free_ports(count: int, host: str = "127.0.0.1") -> tuple[int, ...]:
    """Return `count` different ports that are free now and that no connection will take.

    They lie below the range from which the kernel gives ports to outgoing connections: an engine
    opens dozens of these before it listens on the port it was given. Raises OSError when there
    are not enough.
    """
    first_ephemeral = int(EPHEMERAL.read_text(encoding="utf-8").split()[0])
    candidates = list(range(FIRST_PORT, max(first_ephemeral, FIRST_PORT + 1)))
    random.shuffle(candidates)
    free = (port for port in candidates if bind_error(port, host) is None)
    ports = tuple(itertools.islice(free, count))
    if len(ports) < count:
        raise OSError(errno.EADDRINUSE, f"fewer than {count} free ports", f"{host}:{FIRST_PORT}-")
    return ports


def bind_error(port: int, host: str = "127.0.0.1") -> OSError | None:
    """Return why no server could listen there now, or None when one could."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


@dataclass(frozen=True)
class Listener:
    """A socket that listens: its inode, and the number of the user whose it is."""

    inode: str
    user: int


def owner_of(port: int, proc: Path = Path("/proc")) -> str:
    """Name who listens on a port: "pid 12 (nginx)", or "a process of root" if no more shows."""
    found = [one for name in TABLES for one in listeners(_table(proc / "net" / name), port)]
    if not found:
        return "a process that cannot be seen"
    for folder in proc.iterdir():
        if folder.name.isdigit() and _holds(folder, {one.inode for one in found}):
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"pid {folder.name} ({name})"
    return f"a process of {_user_name(found[0].user)}"


def listeners(table: str, port: int) -> list[Listener]:
    """Return who listens on a port, from the text of /proc/net/tcp or tcp6."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return [
        Listener(row[9], int(row[7]))
        for row in rows
        if row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == port
    ]


def _table(path: Path) -> str:
    """Return the text of a table; a kernel without IPv6 has one less."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _holds(folder: Path, inodes: set[str]) -> bool:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    with contextlib.suppress(OSError):
        for handle in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(handle.readlink()) in wanted:
                    return True
    return False
