"""Four nodes in a ring that a plan can be applied to: namespaces, with a card's tools in PATH.

Addresses, routes and neighbours are the kernel's. `tc` keeps filters in a store, for this kernel
has no flower, and the node's transit does what the store says is in hardware. `devlink`, `ethtool`,
`docker` and `cc` are small programs in `shims`; the marker is the real one, linked with a
stand-in of libmlx5.
"""

import contextlib
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fleet.nodes.requirements import PATH
from tests.ring.namespace_ring import NamespaceRing
from tests.ring.ring_node import RingNode
from tests.ring.sparks import sparks
from tests.ring_apply.scripts import DEVICES, RESET, SET_UP, SSH, STATE
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.ring import inside
from tetraspark.ring.build import ring_plan
from tetraspark.ring.plan import RingPlan

HERE = Path(__file__).parent
SHIMS = HERE / "shims"
MARKER_C = Path(inside.__file__).parent / "marker.c"
SESSION = "192.168.1.100 40000 192.168.1.{} 22"


class Machines:
    """The nodes, and a runner of their commands as NodeRunner says; `lost` nodes do not answer."""

    def __init__(self, folder: Path) -> None:
        self.marker = folder / "marker"
        stand_in = HERE / "fake_mlx5.c"
        subprocess.run(["cc", "-o", self.marker, MARKER_C, stand_in], check=True)
        self.ring = NamespaceRing()
        self.names = [node.name for node in self.ring.nodes]
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self.session = SESSION
        self.lost: set[str] = set()
        self.lost_after: dict[tuple[str, str], bool] = {}
        self.asked: list[tuple[str, str]] = []
        for node in self.ring.nodes:
            self.sh(node.name, SET_UP, f"192.168.1.{11 + node.rank}")

    def reset(self, plan: RingPlan) -> None:
        """Bring the nodes to what they were: addresses of the plan, and nothing else of it."""
        self.lost, self.lost_after, self.asked = set(), {}, []
        self.session = SESSION
        self._end_workers()
        for node in self.ring.nodes:
            lines = [f"addr flush dev {dev}\nroute flush dev {dev}" for dev in DEVICES]
            lines += [f"neigh flush dev {dev} nud all" for dev in DEVICES]
            lines += [f"link set {dev} up mtu 9000" for dev in DEVICES]
            functions = plan.members[node.rank].functions
            lines += [f"addr add {one.interface} dev {one.netdev}" for one in functions]
            qdiscs = [
                f"qdisc del dev {dev} {kind}" for dev in DEVICES for kind in ("clsact", "ingress")
            ]
            self.sh(node.name, RESET, "\n".join(lines) + "\n", "\n".join(qdiscs) + "\n")
            node.set_rules(())
            node.hits_file.unlink(missing_ok=True)
            if node._transit is not None and node._transit.stdout is not None:
                node._transit.wait()
                node._transit.stdout.close()
                node._transit = None

    def node(self, name: str) -> RingNode:
        """Return a node by its name."""
        return self.ring[self.names.index(name)]

    def environment(self, node: RingNode) -> dict[str, str]:
        """Return what an ssh session in a node sees."""
        return {
            "PATH": f"{SHIMS}:/usr/bin:/bin:{PATH}",
            "MARKER": str(self.marker),
            "NODE_FOLDER": str(node.folder),
            "SSH_CONNECTION": self.session.format(11 + node.rank),
            "HOME": "/root",
            "PYTHONPATH": f"{Path(inside.__file__).parents[3]}:{HERE.parents[1]}",
        }

    def popen(self, name: str, *argv: str, **more: Any) -> subprocess.Popen[str]:
        """Start a command in a node, as a session of ssh would."""
        node = self.node(name)
        env = self.environment(node)
        return subprocess.Popen(node.argv(*argv), env=env, text=True, **more)

    def sh(self, name: str, script: str, *words: str, check: bool = False) -> str:
        """Run a shell script in a node and return what it printed."""
        node = self.node(name)
        done = subprocess.run(
            node.argv("sh", "-c", script, "sh", *words),
            env=self.environment(node),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        """Run a command in a node, or lose it: before it starts, or its answer."""
        verb = _verb(command)
        self.asked.append((node, verb))
        if node in self.lost:
            raise RunError(Problem(node, "ssh: no answer", "a node that answers", "ping it"))
        before = self.lost_after.get((node, verb))
        if before is not None:
            self.lost.add(node)
        if before:
            return self.run(node, command, on_line)
        assert isinstance(command.stdin, bytes) or command.stdin is None
        where = self.node(node)
        done = subprocess.run(
            where.argv(*command.argv),
            env=self.environment(where),
            input=command.stdin or b"",
            capture_output=True,
            check=False,
            timeout=command.timeout,
        )
        if before is False:
            raise RunError(Problem(node, "ssh: connection lost", "a node that answers", "ping it"))
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        """Nothing of a ring is copied."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Nothing runs for long here."""

    def reachable(self, folder: Path, plan: RingPlan) -> Path:
        """Make a folder for the front of PATH, with an `ssh` whose hosts are the nodes.

        Each node gets the GIDs of its addresses, at index 3.
        """
        for node in self.ring.nodes:
            words = [f"{key}={value}" for key, value in self.environment(node).items()]
            argv = shlex.join(["env", "-i", *node.argv("env", *words, "sh", "-c")])
            host = folder / "hosts" / node.name
            host.parent.mkdir(exist_ok=True)
            host.write_text(f'#!/bin/sh\nexec {argv} "$1"\n')
            host.chmod(0o755)
            (node.folder.parent / "server.json").unlink(missing_ok=True)
            for one in plan.members[node.rank].functions:
                a, b, c, d = one.address.packed
                gid = f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
                port = f"/sys/class/infiniband/{one.rdma}/ports/1"
                script = f"cd {port}; rm -rf gids gid_attrs; mkdir -p gids gid_attrs/types; "
                script += f"echo {gid} >gids/3; echo RoCE v2 >gid_attrs/types/3"
                self.sh(node.name, script, check=True)
        ssh = folder / "ssh"
        ssh.write_text(f"#!/bin/sh\nhosts={folder}/hosts\n" + SSH)
        ssh.chmod(0o755)
        return folder

    def ask(self, name: str, request: dict[str, Any], **cut: Any) -> dict[str, Any]:
        """Return what the node program of a node answers, or `killed` where it was cut off."""
        if name not in self._workers:
            more: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._workers[name] = self.popen(name, sys.executable, str(HERE / "worker.py"), **more)
        worker = self._workers[name]
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps({"request": request, **cut}) + "\n")
        worker.stdin.flush()
        answer: dict[str, Any] = json.loads(worker.stdout.readline())
        return answer

    def _end_workers(self) -> None:
        for worker in self._workers.values():
            worker.communicate()
        self._workers = {}

    def state(self, name: str) -> dict[str, Any]:
        """Return all of a node that a plan could touch, without what changes by itself."""
        lines = [line for line in self.sh(name, STATE).splitlines() if line]
        links, neighbours, routes, rules, qdiscs, filters = map(json.loads, lines[:6])
        kept = ("ifname", "mtu", "address", "addr_info")
        return {
            "links": [
                {key: _timeless(one[key]) for key in kept} for one in links if one["ifname"] != "lo"
            ],
            "neighbours": [one for one in neighbours if "PERMANENT" in one["state"]],
            "routes": routes,
            "rules": rules,
            "qdiscs": qdiscs,
            "filters": filters,
            "files": lines[6:],
            "markers": self.markers(name),
        }

    def states(self) -> dict[str, dict[str, Any]]:
        """Return the state of every node."""
        return {name: self.state(name) for name in self.names}

    def markers(self, name: str) -> list[list[str]]:
        """Return the argv of every marker that runs on a node."""
        proc = Path(f"/proc/{self.node(name).pid}/root/proc")
        found = []
        for file in proc.glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                argv = file.read_bytes().rstrip(b"\0").decode().split("\0")
                found += [argv] if argv[0].endswith("/marker") else []
        return sorted(found)

    def close(self) -> None:
        """End the nodes."""
        self._end_workers()
        self.ring.close()


def _verb(command: NodeCommand) -> str:
    text = command.stdin if isinstance(command.stdin, bytes) else b""
    _, found, rest = text.rpartition(b'REQUEST = \'{"verb": "')
    return rest.split(b'"')[0].decode() if found else command.argv[0]


def _timeless(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    names = ("valid_life_time", "preferred_life_time", "tentative")
    return [{key: it for key, it in one.items() if key not in names} for one in value]


def plan_of(**more: Any) -> RingPlan:
    """Return a plan for these nodes."""
    return ring_plan(sparks(**more))
