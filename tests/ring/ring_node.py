"""One node of a ring of namespaces: commands, sockets and frames in it, and its stand-in NIC."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from tests.fleet.nodes.rack import child_of, wait_until
from tests.fleet.nodes.requirements import PATH
from tests.ring import transit
from tetraspark.ring.rule import RelayRule

CLONE_NEWNET = 0x40000000

Made = TypeVar("Made")


class RingNode:
    """One node: network, mounts, host name and processes of its own."""

    def __init__(self, rank: int, folder: Path) -> None:
        self.rank = rank
        self.name = f"spark{rank}"
        self.folder = folder
        self.rules = folder / "rules"
        self.hits_file = folder / "rules.hits"
        self._transit: subprocess.Popen[bytes] | None = None
        own = ("--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *own, "tini", "--", "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PATH": PATH},
        )
        self.pid = 0

    def wait(self) -> None:
        """Wait until the node has its first process."""
        wait_until(lambda: child_of(self._process.pid) is not None, self.name)
        self.pid = child_of(self._process.pid) or 0
        wait_until(lambda: self.inside("tini") or self.inside("sleep"), self.name)
        self.run("hostname", self.name)
        self.write("/proc/sys/net/ipv4/ip_forward", "0")
        self.ip("link set lo up")

    def inside(self, program: str) -> bool:
        """Whether the first process runs this program by now."""
        return (Path("/proc") / str(self.pid) / "comm").read_text().strip() == program

    def argv(self, *argv: str) -> list[str]:
        """Return the command that runs another one in the node."""
        target = ("--target", str(self.pid), "--net", "--mount", "--uts", "--pid")
        return ["nsenter", *target, "--", *argv]

    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the node."""
        return subprocess.run(
            self.argv(*argv),
            capture_output=True,
            text=True,
            check=check,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PATH": PATH},
        )

    def ip(self, *lines: str) -> None:
        """Run `ip` commands in the node, one a line."""
        done = subprocess.run(
            self.argv("ip", "-batch", "-"),
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{lines}: {done.stderr}"

    def write(self, path: str, text: str) -> None:
        """Write a file as the node sees it."""
        self.run("sh", "-c", 'printf %s "$2" > "$1"', "sh", path, text)

    def within(self, make: Callable[[], Made]) -> Made:
        """Return what `make` makes while its thread is in the node's network: a socket stays."""
        made: list[Made] = []
        failed: list[BaseException] = []

        def enter() -> None:
            try:
                with Path(f"/proc/{self.pid}/ns/net").open() as file:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setns(file.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                made.append(make())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return made[0]

    def open(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a socket of the node's network."""
        return self.within(lambda: socket.socket(family, kind, protocol))

    def send(self, device: str, frame: bytes) -> None:
        """Send a frame out of a device."""
        with self.open(socket.AF_PACKET, socket.SOCK_RAW) as made:
            made.bind((device, 0))
            made.send(frame)

    def forwarded(self) -> int:
        """Return how many packets the kernel forwarded (ForwDatagrams)."""
        text = Path(f"/proc/{self.pid}/net/snmp").read_text()
        names, values = [line.split() for line in text.splitlines() if line.startswith("Ip:")]
        return int(values[names.index("ForwDatagrams")])

    def set_rules(self, rules: Iterable[RelayRule], in_hw: bool = True) -> None:
        """Give the NIC these rules in place of all it had."""
        listed = [
            asdict(one) | {"preference": one.preference, "handle": one.handle, "in_hw": in_hw}
            for one in rules
        ]
        new = self.folder / "rules.written"
        new.write_text(json.dumps(listed))
        new.rename(self.rules)

    def start_transit(self) -> None:
        """Start what stands for the NIC; `rules` may be written before and after."""
        if not self.rules.exists():
            self.set_rules(())
        argv = self.argv(sys.executable, "-I", transit.__file__, str(self.rules))
        self._transit = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._transit.stdout is not None
        assert self._transit.stdout.readline() == b"ready\n", f"transit of {self.name}"

    def hits(self) -> dict[str, int]:
        """Return the packets that each rule relayed, by `netdev preference handle`."""
        found: dict[str, int] = json.loads(self.hits_file.read_text())
        return found

    def close(self) -> None:
        """End every process of the node; its network goes with them."""
        with contextlib.suppress(ProcessLookupError):
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        if self._transit is not None:
            self._transit.wait()
            assert self._transit.stdout is not None
            self._transit.stdout.close()
