"""What a plan needs to know of the nodes at the moment of a launch. Pure: facts in, a value out.

Nothing here is remembered from an earlier launch and nothing is guessed: the interface is the one
that has the node's configured address, the devices are those of the site, and each must have a
GID of the address on its own port. NCCL takes one GID index for all devices of a rank, and the
kernel moves entries while a line loads, so no index is ever set: NCCL is told to take an IPv4
entry of RoCE v2 and looks for it on each device when it connects. What is checked here is that
there is exactly one such entry for it to find.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.line.launch_devices import DeviceGid, device_gids, shared_index
from tetraspark.line.launch_image import baked, image_wanted
from tetraspark.line.launch_interface import WANTED as INTERFACE
from tetraspark.line.launch_interface import Interface, interface_of
from tetraspark.line.launch_nccl import library_wanted, nccl_of
from tetraspark.line.launch_paths import expanded_paths, refuse_relative
from tetraspark.site.hca import render
from tetraspark.site.load import LoadedSite

WANTED = INTERFACE
"""What `resolve` must have of a node, beside its fabric; `wanted` adds what the site names."""

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
    """All nodes of a fleet at launch, the head first, and what is doubtful about them.

    `nccl` is what NCCL is told, the same on every rank; None for a site without a fabric.
    """

    nodes: tuple[NodeLaunch, ...]
    warnings: tuple[Problem, ...] = ()
    nccl: NcclProfile | None = None

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
    """Return all that `resolve` reads of a node of this site, beside its fabric.

    Raises UsageError for a patched NCCL that no container can be given.
    """
    return WANTED | image_wanted(loaded) | library_wanted(loaded)


def resolve(
    loaded: LoadedSite, facts: Mapping[str, Facts], fabrics: Mapping[str, NodeFabric]
) -> Launch:
    """Return the launch of a fleet site; `facts` (of `wanted`) and `fabrics` are by node name.

    Raises UsageError for paths that no node can take, then RunError with everything that is wrong
    on any node or with NCCL on all of them; UsageError where that is the site alone. Raises
    KeyError for a node that was not looked at.
    """
    refuse_relative(loaded)
    examined = [
        _examine(loaded, rank, facts[node.name], fabrics[node.name])
        for rank, node in enumerate(loaded.site.nodes)
    ]
    problems = [one for _, _, found in examined for one in found]
    nccl, found = _nccl(loaded, facts, fabrics, problems)
    problems += found
    nodes, warnings = [], []
    for rank, (interface, gids, found) in enumerate(examined):
        node = loaded.site.nodes[rank].name
        if interface is None or found:
            continue
        env = _environment(loaded, interface, gids, nccl.devices[node] if nccl else ())
        given = {*env, *loaded.site.env, *(nccl.environment if nccl else ())}
        errors, doubts = baked(facts[node], given)
        problems += errors
        warnings += doubts
        paths, address = expanded_paths(loaded, rank, facts[node]), str(interface.address)
        home, netdev = facts[node].home, interface.netdev
        nodes.append(NodeLaunch(node, home, address, netdev, gids, env, paths))
    if problems:
        raise RunError(*problems)
    return Launch(tuple(nodes), tuple(warnings), nccl)


def _nccl(
    loaded: LoadedSite,
    facts: Mapping[str, Facts],
    fabrics: Mapping[str, NodeFabric],
    problems: Sequence[Problem],
) -> tuple[NcclProfile | None, list[Problem]]:
    """Return the profile and what is wrong with it, beside `problems` of the nodes.

    Raises UsageError where there are none but those of the site itself.
    """
    try:
        return nccl_of(loaded, facts, fabrics, judge_devices=not problems)
    except UsageError as error:
        if not problems:
            raise
        return None, list(error.problems)


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
    loaded: LoadedSite,
    interface: Interface,
    gids: tuple[DeviceGid, ...],
    devices: Sequence[str],
) -> dict[str, str]:
    """Return the variables of one rank that are of its own node; `devices` are those for NCCL."""
    found = {
        "GLOO_SOCKET_IFNAME": interface.netdev,
        # Without `=` NCCL takes every device whose name begins so: a VLAN on top of it, too.
        "NCCL_SOCKET_IFNAME": f"={interface.netdev}",
        "NCCL_IB_ADDR_FAMILY": "AF_INET",
        "NCCL_IB_ROCE_VERSION_NUM": "2",
    }
    if devices:
        found["NCCL_IB_HCA"] = render(devices)
    if loaded.site.image is not None and loaded.site.image.recipe == ROCENANTE:
        found["B12X_ROCE_HCA"] = ",".join(gid.device for gid in gids)
        found["B12X_ROCE_GID_INDEX"] = str(gids[0].index)
    return found
