"""One node as the judges see it: its place in the site, what was found, what was good before."""

import shlex
from dataclasses import dataclass
from functools import cached_property

from tetraspark.doctor.baseline import NodeState
from tetraspark.doctor.burn import Burn
from tetraspark.doctor.check import Check
from tetraspark.doctor.paths import model_folder
from tetraspark.errors import Problem
from tetraspark.fabric.function import NodeFabric
from tetraspark.fleet.facts import Facts, Said
from tetraspark.fleet.login import Login
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Node
from tetraspark.weights.checkpoint import checkpoint_checks

NOT_ASKED = Said(127, "", "not asked for")


@dataclass(frozen=True)
class NodeView:
    """What judges get of one node.

    `login` is None for this machine itself. `good` is the node's state when the line last became
    ready, if that is known; `burn` what the GPU did under load, or why it was not loaded.
    `key` is why a start would refuse the line's API key file.
    """

    loaded: LoadedSite
    rank: int
    login: Login | None
    facts: Facts
    fabric: NodeFabric
    good: NodeState | None = None
    burn: Burn | str | None = None
    key: Problem | None = None

    @property
    def node(self) -> str:
        """The node's name."""
        return self.facts.node

    @property
    def place(self) -> Node:
        """The node's table in the site file."""
        return self.loaded.site.nodes[self.rank]

    @property
    def devices(self) -> tuple[str, ...]:
        """The RDMA devices that the site names for this node."""
        fabric = self.loaded.site.fabric
        return self.place.devices or (fabric.devices if fabric else ())

    @property
    def devices_key(self) -> str:
        """Where the site names them."""
        key = f"nodes[{self.rank}].devices" if self.place.devices else "fabric.devices"
        return self.loaded.origin(key).where

    @cached_property
    def checkpoint(self) -> list[Check]:
        """What is to be said of the checkpoint; empty on a node that mounts it from a server."""
        folder = model_folder(self.loaded, self.rank)
        return checkpoint_checks(self.node, folder, self.facts) if folder else []

    def said(self, name: str) -> Said:
        """Return what a command of the probe said."""
        return self.facts.commands.get(name, NOT_ASKED)

    def shell(self, command: str) -> str:
        """Return a command for a person to type, so that it runs on this node."""
        return command if self.login is None else f"ssh {self.login} {shlex.quote(command)}"
