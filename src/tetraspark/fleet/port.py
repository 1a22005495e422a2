"""TCP ports of this machine: free ones, and who holds a taken one."""

import contextlib
import errno
import itertools
import random
import socket
from pathlib import Path

FIRST_PORT = 10240
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


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


def owner_of(port: int, proc: Path = Path("/proc")) -> str:
    """Name the process that listens on a port: "pid 12 (nginx)", or "another user's process"."""
    inodes = _listening_inodes((proc / "net" / "tcp").read_text(encoding="utf-8"), port)
    for folder in proc.iterdir():
        if folder.name.isdigit() and _holds(folder, inodes):
            name = (folder / "comm").read_text(encoding="utf-8").strip()
            return f"pid {folder.name} ({name})"
    return "another user's process"


def _listening_inodes(table: str, port: int) -> set[str]:
    """Return the socket inodes that listen on a port, from the text of /proc/net/tcp."""
    inodes = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        listening = fields[3] == "0A"
        if listening and int(fields[1].rsplit(":", 1)[1], 16) == port:
            inodes.add(fields[9])
    return inodes


def _holds(folder: Path, inodes: set[str]) -> bool:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    with contextlib.suppress(OSError):
        for handle in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(handle.readlink()) in wanted:
                    return True
    return False
