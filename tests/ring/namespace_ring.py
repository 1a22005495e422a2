"""A ring of network namespaces with a Spark's device names: real cables, routes and neighbours.

Stands for four Sparks, apart from the NICs' own forwarding: this kernel has no flower classifier
and no NIC would do it, so a program on each node, `transit`, applies the rules frame by frame.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fleet.nodes.rack import sh
from tests.fleet.nodes.requirements import PATH
from tests.ring.ring_node import RingNode
from tests.ring.sparks import mac, netdev, wires

MTU = 9000
PROGRAMS = {"ip": "iproute2", "iptables": "iptables", "nsenter": "util-linux", "tini": "tini"}


def require_ring() -> None:
    """Without what the namespaces need, fail in CI and skip elsewhere, and say what it is."""
    lacking = [name for tool, name in PROGRAMS.items() if shutil.which(tool, path=PATH) is None]
    lacking += [] if os.geteuid() == 0 else ["root"]
    if lacking:
        text = f"the ring of namespaces needs {', '.join(lacking)}"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)


class NamespaceRing:
    """Nodes cabled in a ring, their devices up and without addresses.

    `toward_next` is by rank the cage whose cable leads to the next rank. The cards' addresses are
    those of `tests.ring.sparks`, so `ring_plan(sparks(...))` is a plan for these nodes.
    """

    def __init__(self, nodes: int = 4, toward_next: Sequence[int] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tetraspark-ring-"))
        self.nodes: list[RingNode] = []
        try:
            for rank in range(nodes):
                folder = self.folder / f"spark{rank}"
                folder.mkdir()
                self.nodes.append(RingNode(rank, folder))
            for node in self.nodes:
                node.wait()
            self._cable(toward_next or [0] * nodes)
        except BaseException:
            self.close()
            raise

    def __getitem__(self, rank: int) -> RingNode:
        """Return the node of a rank."""
        return self.nodes[rank]

    def _cable(self, toward_next: Sequence[int]) -> None:
        """Lay both halves of every cable."""
        for near, far in wires(len(self.nodes), toward_next):
            for half in (0, 1):
                sh("ip", "link", "add", *self._end(*near, half), "type", "veth", "peer",
                   *self._end(*far, half))  # fmt: skip
        for node in self.nodes:
            node.ip(*(f"link set {netdev(c, h)} up" for c in (0, 1) for h in (0, 1)))

    def _end(self, rank: int, cage: int, half: int) -> tuple[str, ...]:
        card = ("mtu", str(MTU), "address", mac(rank, cage, half))
        return ("name", netdev(cage, half), *card, "netns", str(self.nodes[rank].pid))

    def close(self) -> None:
        """End all nodes and remove what they left."""
        for node in self.nodes:
            node.close()
        shutil.rmtree(self.folder)
