"""One node of the fleet: a machine of its own, as far as ssh, rsync and Docker can tell."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.fleet.nodes import cgroups
from tests.fleet.nodes.files import HERE, address_of, name_of, write_files
from tests.fleet.nodes.rack import Rack, child_of, sh, wait_until
from tests.fleet.nodes.requirements import PATH

DISK_BYTES = 3 << 30
# Moves itself into the node's cgroups, then becomes the command.
JOIN = 'for folder in $1; do echo 0 > "$folder/cgroup.procs" || exit; done; shift; exec "$@"'


class Node:
    """Node `number` of a rack: its disk outlives its power.

    `shared` are folders of this machine that it sees, where its own would hide them.
    """

    def __init__(
        self, rack: Rack, number: int, authorized_key: Path, shared: Sequence[Path] = ()
    ) -> None:
        self.rack = rack
        self.shared = shared
        self.name = name_of(number)
        self.address = address_of(number)
        self.folder = rack.folder / self.name
        self._pid: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._sshd_stopped = self._docker_stopped = self._slow = False
        write_files(self.folder / "files", number, authorized_key)
        disk = self.folder / "disk"
        with disk.open("wb") as file:
            file.truncate(DISK_BYTES)
        lazy = "lazy_itable_init=1,lazy_journal_init=1"
        sh("mkfs.ext4", "-q", "-F", "-m", "0", "-E", lazy, disk)

    @property
    def pid(self) -> int:
        """Process 1 of the node, as this machine counts."""
        assert self._pid is not None, f"{self.name} is off"
        return self._pid

    @property
    def root(self) -> Path:
        """The node's root folder, seen from this machine."""
        return Path(f"/proc/{self.pid}/root")

    @property
    def host_key(self) -> str:
        """Its line of a known_hosts file."""
        key = (self.folder / "files/etc/tetraspark/host_key.pub").read_text().split()[:2]
        return f"{self.name},{self.address} {' '.join(key)}\n"

    def power_on(self) -> None:
        """Boot; returns before sshd and Docker answer."""
        groups = [
            (one.controllers, one.folder / self.rack.folder.name / self.name)
            for one in cgroups.own_hierarchies()
        ]
        for _, folder in groups:
            cgroups.make(folder)
        argv = [
            *("bash", "-c", JOIN, "join", " ".join(str(folder) for _, folder in groups)),
            *("nsenter", "--target", str(self.rack.pid), "--net", "--mount", "--pid"),
            *("unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup"),
            *("--fork", "--kill-child", "bash", str(HERE / "stage.sh")),
            *(str(self.folder / "disk"), str(self.folder / "files"), self.name),
            " ".join(controllers for controllers, _ in groups),
            " ".join(map(str, self.shared)),
        ]
        with (self.folder / "console").open("ab") as console:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=os.environ | {"PATH": PATH},
            )
        self._sshd_stopped = self._docker_stopped = self._slow = False
        wait_until(self._has_begun, f"{self.name}: process 1")
        self.rack.plug(self.name, self.pid, self.address)

    def _has_begun(self) -> bool:
        """Find process 1: nsenter's child is unshare, and unshare's is the node's."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} did not boot: {self.console()}")
        unshare = child_of(self._process.pid)
        self._pid = None if unshare is None else child_of(unshare)
        return self._pid is not None

    def console(self) -> str:
        """Return what the node printed while booting."""
        return (self.folder / "console").read_text(errors="replace")[-2000:]

    def wait(self) -> None:
        """Wait until sshd and Docker answer."""
        wait_until(lambda: self._alive() and self._sshd(), f"{self.name}: sshd")
        wait_until(lambda: self._alive() and self._docker(), f"{self.name}: docker")

    def _alive(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} died: {self.console()}")
        return True

    def _sshd(self) -> bool:
        listening = Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()
        fields = [line.split() for line in listening[1:]]
        return any(one[1].endswith(":0016") and one[3] == "0A" for one in fields)

    def _docker(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(2)
            client.connect(f"{self.root}/run/docker.sock")
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in client.recv(64)
        return False

    def power_off(self) -> None:
        """Cut the power: every process of the node dies at once, its cable goes dark."""
        os.kill(self.pid, signal.SIGKILL)
        self.gone()
        for one in cgroups.own_hierarchies():
            cgroups.remove(one.folder / self.rack.folder.name / self.name)

    def gone(self) -> None:
        """Wait for the end of a node whose process 1 was killed."""
        if self._process is not None:
            self._process.wait(timeout=20)
        self._pid = None

    def exec(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command inside the node, not through ssh."""
        return subprocess.run(
            ["nsenter", "--target", str(self.pid), "--all", "--wd=/", *argv],
            env={"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=check,
        )

    def sshd_stop(self) -> None:
        """End the listening sshd; sessions that are open live on."""
        self.exec("kill", (self.root / "run/sshd.pid").read_text().strip())
        wait_until(lambda: not self._sshd(), f"{self.name}: sshd ends")
        self._sshd_stopped = True

    def sshd_start(self) -> None:
        """Start sshd again."""
        self._sshd_stopped = False
        self.exec("/usr/sbin/sshd", "-f", "/etc/tetraspark/sshd_config", "-E", "/var/log/sshd.log")

    def docker_stop(self) -> None:
        """End the Docker daemon."""
        pid = (self.root / "run/docker.pid").read_text().strip()
        self.exec("kill", pid)
        # It answers nobody long before it has let go of its folder, which the next one needs.
        gone = ("sh", "-c", f"! kill -0 {pid}")
        wait_until(
            lambda: self.exec(*gone, check=False).returncode == 0, f"{self.name}: docker ends"
        )
        self._docker_stopped = True

    def docker_start(self) -> None:
        """Start the Docker daemon again; returns before it answers."""
        self._docker_stopped = False
        self.exec("sh", "/etc/tetraspark/dockerd")

    def freeze(self) -> None:
        """Stop every process: connections are accepted, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """End a freeze."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _processes(self) -> list[int]:
        """Return the node's processes, containers included, process 1 first."""
        parents: dict[int, int] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    parents[int(folder.name)] = int(fields[1])
        found = [self.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def break_containers(self, *variables: str) -> None:
        """Give every container of this node variables that nobody asked for."""
        (self.root / "etc/tetraspark/fault").write_text("\n".join(variables))

    def slow(self, rate: str) -> None:
        """Let no more than `rate`, as tc writes it (`8mbit`), reach the node."""
        shape = ("tbf", "rate", rate, "burst", "16kb", "latency", "400ms")
        self.rack.net("tc", "qdisc", "replace", "dev", self.name, "root", *shape)
        self._slow = True

    def give_containers(self, *folders: Path) -> None:
        """Let every container of this node see folders of the node, at the same place."""
        (self.root / "etc/tetraspark/mounts").write_text("\n".join(map(str, folders)))

    def fill_disk(self, leave: int = 0) -> None:
        """Fill the disk but for `leave` bytes."""
        with (self.root / "tmp/fill").open("ab") as file:
            step = DISK_BYTES
            while step >= 4096:
                state = os.fstatvfs(file.fileno())
                step = min(step, state.f_bavail * state.f_frsize - leave)
                try:
                    if step > 0:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, step)
                except OSError:
                    step //= 2

    def heal(self) -> None:
        """Undo what a test may have done to the node."""
        if self._pid is None:
            self.power_on()
        self.thaw()
        for left in ("tmp/fill", "etc/tetraspark/fault", "etc/tetraspark/mounts"):
            (self.root / left).unlink(missing_ok=True)
        if self._sshd_stopped:
            self.sshd_start()
        if self._docker_stopped:
            self.docker_start()
        if self._slow:
            self.rack.net("tc", "qdisc", "del", "dev", self.name, "root")
            self._slow = False
