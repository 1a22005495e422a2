"""Four nodes, the ssh settings that reach them, and a registry they pull from."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fleet.nodes import registry
from tests.fleet.nodes.files import NODES, REGISTRY_PORT
from tests.fleet.nodes.machine import Node
from tests.fleet.nodes.rack import SUBNET, SWITCH, Rack, sh


class Fleet:
    """Four running nodes; `bin` has an `ssh` that reaches them, for the front of PATH."""

    def __init__(self, shared: Sequence[Path] = ()) -> None:
        self.rack = Rack()
        try:
            self.folder = self.rack.folder
            self.key = self.folder / "id_ed25519"
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fleet", "-f", self.key)
            public = self.key.with_suffix(".pub")
            numbers = range(1, NODES + 1)
            with ThreadPoolExecutor(NODES) as pool:
                self.nodes = list(pool.map(lambda n: Node(self.rack, n, public, shared), numbers))
            for node in self.nodes:
                node.power_on()
            for node in self.nodes:
                node.wait()
            self._write_ssh()
            self._registry = self._start_registry()
        except BaseException:
            self.rack.close()
            raise

    def __getitem__(self, number: int) -> Node:
        """Return node 1 to 4."""
        return self.nodes[number - 1]

    @property
    def bin(self) -> Path:
        """Folder with an `ssh` that runs the real one on the nodes' network."""
        return self.folder / "bin"

    @property
    def ssh_config(self) -> Path:
        """The client's settings, in place of ~/.ssh/config."""
        return self.folder / "ssh_config"

    def _write_ssh(self) -> None:
        self.folder.joinpath("known_hosts").write_text("".join(n.host_key for n in self.nodes))
        lines = [f"Host {node.name}\n    HostName {node.address}\n" for node in self.nodes]
        lines.append(
            "Host node* 10.99.0.*\n"
            f"    User root\n    IdentityFile {self.key}\n    IdentitiesOnly yes\n"
            f"    UserKnownHostsFile {self.folder}/known_hosts\n"
            "    GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n"
        )
        self.ssh_config.write_text("".join(lines))
        self.bin.mkdir()
        ssh = self.bin / "ssh"
        net = f"--net=/proc/{self.rack.pid}/ns/net"
        command = shlex.join(["nsenter", net, "/usr/bin/ssh", "-F", str(self.ssh_config)])
        ssh.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        ssh.chmod(0o755)

    @property
    def registry(self) -> Path:
        """Folder of the registry that the nodes pull from, in place of Docker Hub."""
        return self.folder / "registry"

    def _start_registry(self) -> subprocess.Popen[bytes]:
        """Serve the folder on the nodes' network; it ends with the rack."""
        inside = ["nsenter", "--target", str(self.rack.pid), "--net", "--pid"]
        address = [f"{SUBNET}.{SWITCH}", str(REGISTRY_PORT)]
        script = [sys.executable, registry.__file__, str(self.registry)]
        return subprocess.Popen([*inside, *script, *address], stdin=subprocess.DEVNULL)

    def heal(self) -> None:
        """Switch on, thaw and empty what a test left otherwise."""
        for node in self.nodes:
            node.heal()
        for node in self.nodes:
            node.wait()

    def close(self) -> None:
        """End all of it."""
        self.rack.close()
        for node in self.nodes:
            node.gone()
        self._registry.wait(timeout=20)
