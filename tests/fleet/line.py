"""A line of the fleet's four nodes, whose image has a stand-in for the engine."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.nodes.base_image import ENGINE_TREE, make_base
from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.machine import Node
from tests.serving import ROOT, Command
from tests.weights.checkpoints import write_checkpoint
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.containers import Containers
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.line.fleet_start import FleetStart
from tetraspark.line.make_plan import make_plan
from tetraspark.line.progress import Progress
from tetraspark.line.run import RunStore
from tetraspark.line.serve import Served, serve
from tetraspark.site.load import load_site

STAND_IN = ROOT / "tests" / "line" / "stand_in_engine.py"
NAME = "tetraspark-test/line"
TAG = "tetraspark-test/line:1"
BASE = "base@sha256:" + "ab" * 32
MODEL = "/srv/model"
DESPITE = ("GPU", "DOCKER.GPU", "RDMA", "LINK", "KERNEL", "LOG")
"""Checks that fail here, where the nodes have no GPU and no fabric."""
KEY = "sk-fleet-4711-very-secret"
SITE = """\
name = "{name}"
kind = "fleet"

{nodes}
[model]
path = "{model}"
served_name = "tiny"

[model.canary]
prompt = "What is 19 + 23?"
expect = "42"

[engine]
tp = 4
ep = 4
context_length = 4096
mem_fraction = 0.01

[api]
host = "0.0.0.0"
port = 8888
key_file = "key"

[image]
recipe = "release"
tag = "{tag}"
base = "{base}"

[weights]
mode = "local"

[fabric]
topology = "switch"
devices = ["rocep1s0f0"]

[collectives]
transport = "verbs"

[watch]
enabled = false

[deadlines]
import_seconds = 20
load_seconds = 20
warmup_seconds = 20
canary_seconds = 10
stop_seconds = 5
"""


def give_image(fleet: Fleet, engine: str | None = None) -> None:
    """Put the image onto every node, pulled from the fleet's own registry.

    `engine` is the program in place of the stand-in.
    """
    more = {f"{ENGINE_TREE}/sglang/launch_server.py": engine or STAND_IN.read_text()}
    labels = {"tetraspark.recipe": "release", "tetraspark.base": BASE}
    digest = make_base(fleet.registry, NAME, more=more, labels=labels)

    def pull(node: Node) -> None:
        node.exec("docker", "pull", "--quiet", f"{NAME}@{digest}")
        node.exec("docker", "tag", f"{NAME}@{digest}", TAG)

    with ThreadPoolExecutor() as pool:
        list(pool.map(pull, fleet.nodes))


def write_site(folder: Path, name: str = "line", **swaps: str) -> Path:
    """Write the site and its key; `swaps` replaces texts of it."""
    nodes = "\n".join(
        f'[[nodes]]\nname = "spark{number}"\nhost = "10.99.0.{number}"\n'
        f'ssh_host = "node{number}"\nuser = "root"\n'
        for number in range(1, 5)
    )
    text = SITE.format(name=name, nodes=nodes, model=MODEL, tag=TAG, base=BASE)
    for old, new in swaps.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    key = folder / "key"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    site = folder / "site.toml"
    site.write_text(text)
    return site


class FleetLine(Command):
    """The command on that site, and what the nodes are to do."""

    def __init__(self, fleet: Fleet, folder: Path, name: str = "line", **swaps: str) -> None:
        self.fleet = fleet
        self.folder = folder
        folder.mkdir(exist_ok=True)
        super().__init__(write_site(folder, name, **swaps), folder / "state")
        self.env |= {"PATH": os.environ["PATH"], "TMPDIR": str(folder)}
        self.state = folder / "state" / name
        for node in fleet.nodes:
            write_checkpoint(node.root / MODEL.lstrip("/"))
            self.behave(node.name, {})

    def argv(self, verb: str, *words: str) -> list[str]:
        """Return the argv of a verb on this site; a start tolerates what the nodes lack."""
        despite = ("--despite", ",".join(DESPITE)) if verb == "serve" else ()
        return super().argv(verb, *words, *despite)

    def behave(self, node: str, behaviour: Mapping[str, Any]) -> None:
        """Say what the stand-in of a node does at its next start."""
        (number,) = (one for one in range(1, 5) if node == f"node{one}")
        model = self.fleet[number].root / MODEL.lstrip("/")
        (model / "behaviour.json").write_text(json.dumps(behaviour))

    @contextlib.contextmanager
    def nodes(self) -> Iterator[SshRunner]:
        """Reach the nodes as the command does, and give them up sooner."""
        with SshRunner(logins(load_site(self.site)), 3, 3) as nodes:
            yield nodes

    def serve(
        self,
        nodes: SshRunner,
        replace: bool = False,
        observe: Callable[[Progress], None] = lambda progress: None,
        despite: Sequence[str] = DESPITE,
    ) -> Served:
        """Serve as the command does, with an impatient runner."""
        loaded = load_site(self.site)
        runner = Containers(nodes, nodes.logins, str(self.site))
        runner.poll_seconds = 0.5
        start = FleetStart(loaded, nodes, despite)
        plan = make_plan(loaded, start.launch())
        return serve(
            loaded,
            plan,
            KEY,
            runner,
            RunStore(loaded.site.name, self.folder / "state"),
            replace,
            observe,
            fleet=start,
        )

    def fails(self, nodes: SshRunner, *despite: str) -> tuple[Problem, ...]:
        """Serve, which has to fail; return why."""
        with pytest.raises(RunError) as caught:
            self.serve(nodes, despite=(*DESPITE, *despite))
        return caught.value.problems

    def containers(self) -> list[str]:
        """Return the names of all containers on all nodes, in any state."""
        found = []
        for node in self.fleet.nodes:
            said = node.exec("docker", "ps", "--all", "--format", "{{.Names}}", check=False)
            found += said.stdout.split()
        return found

    def clean(self) -> None:
        """Remove all containers of all nodes, as no command of ours would."""
        for node in self.fleet.nodes:
            ids = node.exec("docker", "ps", "--all", "--quiet").stdout.split()
            if ids:
                node.exec("docker", "unpause", *ids, check=False)
                node.exec("docker", "rm", "--force", *ids)
        shutil.rmtree(self.folder / "state", ignore_errors=True)
