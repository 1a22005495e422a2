"""How often `serve` looks at the nodes of a fleet: the command's own code, over real ssh."""

import os
from pathlib import Path

import pytest

from tests.fleet.line import DESPITE, TAG, FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tetraspark.cli.line import OpenLine
from tetraspark.cli.serve import fleet_start, start_line
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.containers import Containers
from tetraspark.fleet.login import logins
from tetraspark.fleet.program import program
from tetraspark.fleet.ssh import SshRunner
from tetraspark.line.run import RunStore
from tetraspark.line.units import WATCHED_BY
from tetraspark.receipts.store import ReceiptStore
from tetraspark.site.load import load_site

pytestmark = pytest.mark.fleet
PROBE = program("look", {}).partition(b"REQUEST = ")[0]
NAMES = ["spark1", "spark2", "spark3", "spark4"]


class Counting(SshRunner):
    """Counts the probes that it runs, by node."""

    probed: tuple[str, ...] = ()

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        if isinstance(command.stdin, bytes) and command.stdin.startswith(PROBE):
            self.probed += (node,)
        return super().run(node, command, on_line)


def test_serve_probes_each_node_once(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv(WATCHED_BY, "no watch beside this one")
    give_image(fleet)
    made = FleetLine(fleet, tmp_path)
    loaded = load_site(made.site)
    store = RunStore(loaded.site.name)
    try:
        with Counting(logins(loaded), 3, 3) as nodes:
            line = OpenLine(loaded, store, Containers(nodes, nodes.logins), nodes)
            served = start_line(line, False, fleet_start(line, list(DESPITE)))
            probed = sorted(nodes.probed)
        kept = ReceiptStore(store.root).read(served.run).nodes
    finally:
        made.clean()
    assert probed == NAMES
    for node in kept:
        assert node.kernel == os.uname().release
        assert node.idle_bytes and node.model is not None
        assert node.image is not None and node.image.tag == TAG
        assert node.image.digests[0].startswith("tetraspark-test/line@sha256:")
