"""The variables of each NCCL profile, and one sentence for each on why it is set."""

from collections.abc import Callable

from tetraspark.fabric.nccl_profile import Name, Variable
from tetraspark.fabric.nccl_route import Patch
from tetraspark.site.machines import Ring

PREFERRED = frozenset(("NCCL_NET", "NCCL_NET_PLUGIN"))
"""Variables for which the site's own value wins; another value of the rest breaks the profile."""

_NET = (
    Variable("NCCL_NET", "IB", "without RDMA NCCL would take sockets, and be slow without a word"),
    Variable("NCCL_NET_PLUGIN", "none", "a network plugin in the image would replace NCCL's own"),
)
_RING = (
    Variable("NCCL_ALGO", "Ring", "trees need a path between opposite nodes, and there is none"),
    Variable("NCCL_PAT_ENABLE", "0", "PAT connects ranks two apart, which share no cable"),
    Variable(
        *("NCCL_IB_SUBNET_AWARE_ROUTING", "1"),
        "each cable is a subnet: NCCL has to take the port that shares one with the peer",
    ),
)
_LAZY = (
    Variable(
        *("NCCL_CUMEM_ENABLE", "1"),
        "with cuMem NCCL connects an algorithm at its first use; SGLang sets 0 where it is absent",
    ),
    Variable(
        *("NCCL_RUNTIME_CONNECT", "1"),
        "without it trees are connected right after the rings, and the start ends there",
    ),
)
_PATCHED = (
    Variable("NCCL_SWITCHLESS_RING_ONLY", "1", "tells the patched library to connect no trees"),
    Variable("NCCL_IB_MERGE_NICS", "0", "fused devices overflow the GIDs the library can send"),
    Variable("NCCL_CROSS_NIC", "1", "a rank sends by one port and receives by the other"),
)
_DUAL_PCI = (
    Variable("NCCL_IB_EXTENDED_IPV4_GIDS", "1", "a listener sends four GIDs in place of two"),
    Variable("NCCL_IB_PRESERVE_PCI_DOMAIN", "1", "another port of the same PCI domain comes first"),
    Variable("NCCL_IB_ROUTE_DIAGNOSTICS", "1", "the log names the device of each queue pair"),
    Variable("NCCL_IB_QPS_PER_CONNECTION", "1", "one queue pair a connection, on one device"),
)


def variables(
    name: Name, ring: Ring | None, patch: Patch, where: Callable[[str], str]
) -> tuple[Variable, ...]:
    """Return the variables of a profile, in the order they are explained in.

    `ring` is the site's section, None for its defaults; `where` tells the place of a site key.
    """
    if name in ("switch", "pair"):
        return _NET
    ring = ring or Ring()
    prefix = Variable(
        *("NCCL_IB_SUBNET_PREFIX_LEN", str(ring.subnet_prefix)),
        "the prefix length of one cable's network, by which addresses are compared",
        where("fabric.ring.subnet_prefix"),
    )
    found = [*_NET, *(() if name == "patched" else _LAZY), *_RING, prefix]
    if name == "patched":
        found += _PATCHED + (_DUAL_PCI if patch == "dual-pci" else ())
    elif name == "stock-merged":
        reason = "a fused device offers both its ports' GIDs, so that every cable is found"
        found.append(Variable("NCCL_IB_MERGE_NICS", "1", reason))
    else:
        reason = "every port stays a device of its own, as the site asks"
        found.append(Variable("NCCL_IB_MERGE_NICS", "0", reason))
        reason = "a listener offers one port's GID: both ends of a link must use the same number"
        found.append(Variable("NCCL_CROSS_NIC", "0", reason))
    return (*found, *_channels(ring, where))


def _channels(ring: Ring, where: Callable[[str], str]) -> tuple[Variable, ...]:
    low, high = "fabric.ring.channels_min", "fabric.ring.channels_max"
    reason = "channels take devices in turn: fewer than devices leave some idle"
    more = "each channel pins memory on every rank"
    return (
        Variable("NCCL_MIN_NCHANNELS", str(ring.channels_min), reason, where(low)),
        Variable("NCCL_MAX_NCHANNELS", str(ring.channels_max), more, where(high)),
    )
