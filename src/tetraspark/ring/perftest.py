"""Traffic of perftest: RDMA writes with `ib_write_bw` on both ends of a path."""

import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner, Result
from tetraspark.ring.path import Path
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.traffic import Sent

MESSAGE_BYTES = 4096
"""One packet at an RDMA MTU of 4096, so messages are packets."""
MESSAGES = 5000
PORT = 18515
SECONDS = 60.0
ATTEMPTS = 20
BETWEEN_SECONDS = 0.5
NOT_YET = "Couldn't connect"
ROW = re.compile(r"(?m)^[ \t]*[0-9]{1,18}[ \t]+([0-9]{1,18})[ \t]+\S+[ \t]+\S")


class Perftest:
    """Sends with the nodes' perftest; it does not look at payloads.

    `hosts` are the nodes' management addresses, over which the two ends agree; `gids` the index
    of each RDMA device's planned address, by node.
    """

    name = f"ib_write_bw, {MESSAGES} messages of {MESSAGE_BYTES} bytes a path"

    def __init__(
        self,
        runner: NodeRunner,
        plan: RingPlan,
        hosts: Mapping[str, str],
        gids: Mapping[str, Mapping[str, int | None]],
    ) -> None:
        self._runner = runner
        self._plan = plan
        self._hosts = hosts
        self._gids = gids

    def send(self, path: Path) -> Sent:
        """Write from the source to the target. Raises RunError without a program or a GID."""
        source, target = (self._plan.members[one].node for one in (path.source, path.target))
        server = self._command(source=False, path=path)
        client = self._command(source=True, path=path)
        with ThreadPoolExecutor(1) as pool:
            listening = pool.submit(self._runner.run, target, server)
            ended = self._connect(source, client)
            other = listening.result()
        for node, one in ((source, ended), (target, other)):
            if one.rc == 127:
                fix = f"on {node}: sudo apt-get install perftest"
                raise RunError(Problem(node, "no ib_write_bw", "perftest on every node", fix))
        return read_perftest(ended, other)

    def _connect(self, node: str, command: NodeCommand) -> Result:
        """Run the client; the server's port may open a moment later."""
        for _ in range(ATTEMPTS):
            ended = self._runner.run(node, command)
            if NOT_YET not in ended.stderr + ended.stdout:
                break
            time.sleep(BETWEEN_SECONDS)
        return ended

    def _command(self, source: bool, path: Path) -> NodeCommand:
        rank, netdev = (path.source, path.netdev) if source else (path.target, path.target_netdev)
        member = self._plan.members[rank]
        device = member.function(netdev).rdma
        index = self._gids[member.node][device]
        if index is None:
            wanted = "a RoCE v2 GID of its planned address"
            fix = f"on {member.node}: ip addr show {netdev}; tetraspark ring diff PLAN"
            raise RunError(Problem(f"{member.node} {device}", "no such GID", wanted, fix))
        words = ("-d", device, "-x", str(index), "-p", str(PORT), "-F")
        size = ("-s", str(MESSAGE_BYTES), "-n", str(MESSAGES))
        peer = (self._hosts[self._plan.members[path.target].node],) if source else ()
        return NodeCommand(("timeout", "50", "ib_write_bw", *words, *size, *peer), timeout=SECONDS)


def read_perftest(client: Result, server: Result) -> Sent:
    """Return what perftest reports: rows of bytes, iterations, and rates. Pure."""
    counts = [int(count) for count in ROW.findall(client.stdout)]
    if client.rc or server.rc or not counts:
        bad = client if client.rc or not server.rc else server
        last = (bad.stderr.strip().splitlines() or bad.stdout.strip().splitlines() or [""])[-1]
        return Sent(0, False, f"ib_write_bw ended with {bad.rc}: {last[:200]}")
    return Sent(counts[-1], True, f"{counts[-1]} writes of {MESSAGE_BYTES} bytes completed")
