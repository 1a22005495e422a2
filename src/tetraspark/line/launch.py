"""What a plan needs to know of each node at the moment of a launch. Pure: facts in, a value out.

Nothing here is remembered from an earlier launch and nothing is guessed: the interface is the one
that has the node's configured address, the devices are those of the site, and each must have a
GID of the address on its own port. NCCL takes one GID index for all devices of a rank, and the
kernel moves entries while a line loads, so no index is ever set: NCCL is told to take an IPv4
entry of RoCE v2 and looks for it on each device when it connects. What is checked here is that
there is exactly one such entry for it to find.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.function import NodeFabric
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.line.launch_devices import DeviceGid, device_gids, shared_index
from tetraspark.line.launch_image import baked, image_wanted
from tetraspark.line.launch_interface import WANTED as INTERFACE
from tetraspark.line.launch_interface import Interface, interface_of
from tetraspark.line.launch_paths import expanded_paths, refuse_relative
from tetraspark.site.hca import render
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Node

WANTED = INTERFACE
"""What `resolve` must have of a node, beside its fabric; `wanted` adds the image's variables."""

ROCENANTE = "canary-roce"
"""The image recipe whose collectives take one GID index for all devices, 3 where none is given."""


@dataclass(frozen=True)
class NodeLaunch:
    """One node at launch, in the order of [[nodes]].

    `address` is the IPv4 address that its `host` means, on device `interface`; `env` are the
    variables of its rank; `paths` its paths by site key, absolute on this node. Raises ValueError
    for a variable without a value: unset means absent.
    """

    node: str
    home: str
    address: str
    interface: str
    gids: tuple[DeviceGid, ...]
    env: Mapping[str, str]
    paths: Mapping[str, str]

    def __post_init__(self) -> None:
        empty = [name for name, value in self.env.items() if not value]
        if empty:
            raise ValueError(f"variables without a value: {', '.join(empty)}")


@dataclass(frozen=True)
class Launch:
    """All nodes of a fleet at launch, the head first, and what is doubtful about them."""

    nodes: tuple[NodeLaunch, ...]
    warnings: tuple[Problem, ...] = ()

    def __getitem__(self, rank: int) -> NodeLaunch:
        return self.nodes[rank]

    @property
    def head_address(self) -> str:
        """The head's IPv4 address: for the rendezvous, which then needs no names."""
        return self.nodes[0].address

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return asdict(self)


def wanted(loaded: LoadedSite) -> Wanted:
    """Return all that `resolve` reads of a node of this site, beside its fabric."""
    return WANTED | image_wanted(loaded)


def resolve(
    loaded: LoadedSite, facts: Mapping[str, Facts], fabrics: Mapping[str, NodeFabric]
) -> Launch:
    """Return the launch of a fleet site; `facts` (of `wanted`) and `fabrics` are by node name.

    Raises UsageError for paths that no node can take, then RunError with everything that is wrong
    on any node. Raises KeyError for a node that was not looked at.
    """
    refuse_relative(loaded)
    nodes, problems, warnings = [], [], []
    for rank, node in enumerate(loaded.site.nodes):
        interface, gids, found = _examine(loaded, rank, facts[node.name], fabrics[node.name])
        problems += found
        if interface is not None and not found:
            home = facts[node.name].home
            env = _environment(loaded, node, interface, gids)
            errors, doubts = baked(facts[node.name], set(env) | set(loaded.site.env))
            problems += errors
            warnings += doubts
            paths = expanded_paths(loaded, rank, facts[node.name])
            launch = NodeLaunch(
                node.name, home, str(interface.address), interface.netdev, gids, env, paths
            )
            nodes.append(launch)
    if problems:
        raise RunError(*problems)
    return Launch(tuple(nodes), tuple(warnings))


def _examine(
    loaded: LoadedSite, rank: int, facts: Facts, fabric: NodeFabric
) -> tuple[Interface | None, tuple[DeviceGid, ...], list[Problem]]:
    """Return the interface and GIDs of one node, and what is wrong with them."""
    interface, problems = interface_of(loaded, rank, facts)
    gids, found = device_gids(loaded, rank, fabric)
    problems += found
    image = loaded.site.image
    if image is not None and image.recipe == ROCENANTE and not found:
        problems += shared_index(loaded, rank, gids)[1]
    return interface, gids, problems


def _environment(
    loaded: LoadedSite, node: Node, interface: Interface, gids: tuple[DeviceGid, ...]
) -> dict[str, str]:
    """Return the variables of one rank."""
    devices = [gid.device for gid in gids]
    found = {
        "GLOO_SOCKET_IFNAME": interface.netdev,
        # Without `=` NCCL takes every device whose name begins so: a VLAN on top of it, too.
        "NCCL_SOCKET_IFNAME": f"={interface.netdev}",
        "NCCL_IB_HCA": render(devices),
        "NCCL_IB_ADDR_FAMILY": "AF_INET",
        "NCCL_IB_ROCE_VERSION_NUM": "2",
    }
    if "NCCL_NET" not in loaded.site.env:
        # NCCL would otherwise take sockets where RDMA fails, and be slow without a word.
        found["NCCL_NET"] = "IB"
    if loaded.site.image is not None and loaded.site.image.recipe == ROCENANTE:
        found["B12X_ROCE_HCA"] = ",".join(devices)
        found["B12X_ROCE_GID_INDEX"] = str(gids[0].index)
    return found
