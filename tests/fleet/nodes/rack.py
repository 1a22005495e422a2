"""What the nodes of one fleet share: a switch, and the process all of them end with."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fleet.nodes import cgroups
from tests.fleet.nodes.requirements import PATH

PREFIX = "tetraspark-fleet-"
SUBNET = "10.99.0"
SWITCH = 254


def sh(*argv: str | Path) -> str:
    """Run a command of this machine; returns its stdout, raises with its stderr."""
    done = subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PATH": PATH},
    )
    if done.returncode:
        raise RuntimeError(f"{argv}: rc {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait for a condition; raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.03)


def child_of(pid: int) -> int | None:
    """Return the one child of a process, as this machine counts processes, or None."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    return int(folder.name)
    return None


class Rack:
    """Process, mount and network namespaces around all nodes.

    When its first process dies, and it dies with this process, the kernel ends every process of
    every node, their mounts, interfaces and loop devices. What is left then is a folder and some
    empty cgroups: `close` removes them, or the next rack does.
    """

    def __init__(self) -> None:
        remove_leftovers()
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = (self.folder / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL"),
                *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"),
                *("tini", "--", "sleep", "infinity"),
            ],
            stdin=subprocess.DEVNULL,
        )
        wait_until(lambda: child_of(self._process.pid) is not None, "rack")
        self.pid = child_of(self._process.pid) or 0
        self.net("ip", "link", "set", "lo", "up")
        self.net("ip", "link", "add", "switch", "type", "bridge", "forward_delay", "0")
        self.net("ip", "addr", "add", f"{SUBNET}.{SWITCH}/24", "dev", "switch")
        self.net("ip", "link", "set", "switch", "up")

    def net(self, *argv: str) -> str:
        """Run a command of this machine on the nodes' network."""
        return sh("nsenter", f"--net=/proc/{self.pid}/ns/net", *argv)

    def plug(self, port: str, pid: int, address: str) -> None:
        """Lay a cable from the switch to a node's process 1.

        The card's own address stays over a power cut, as a machine's does: others remember it.
        """
        card = f"02:00:00:00:00:{int(address.rpartition('.')[2]):02x}"
        peer = ("peer", "name", "eth0", "address", card, "netns", str(pid))
        self.net("ip", "link", "add", port, "type", "veth", *peer)
        self.net("ip", "link", "set", port, "master", "switch", "up")
        inside = ("nsenter", f"--net=/proc/{pid}/ns/net")
        sh(*inside, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        sh(*inside, "ip", "link", "set", "eth0", "up")

    def close(self) -> None:
        """End every node, then remove what they left."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._lock.close()
        _remove(self.folder)


def remove_leftovers() -> None:
    """Remove what racks left whose process was killed; living ones hold their lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), (folder / "lock").open() as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)


def _remove(folder: Path) -> None:
    for hierarchy in cgroups.own_hierarchies():
        cgroups.remove(hierarchy.folder / folder.name)
    shutil.rmtree(folder)
