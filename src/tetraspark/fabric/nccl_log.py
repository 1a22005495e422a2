"""What NCCL says of itself in a rank's log. Pure: lines in, values out.

Texts of NCCL 2.27 to 2.32. All but the version need `NCCL_DEBUG=INFO`: what was not said is None
or empty, and never taken for good.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from tetraspark.fleet.cause import Cause, cause

SOCKET = "Socket"
RING = "ring"
_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)|sglang is using nccl==(\d+\.\d+\.\d+)")
_NETWORK = re.compile(r"NCCL INFO (?:Using network|Assigned NET plugin) (\w+)")
_USING = re.compile(r"NCCL INFO NET/IB ?: Using ((?:\[\d+\]\S+ ?)+)")
_DEVICE = re.compile(r"\[\d+\]([^:\s]+:\d+)")
_CHANNEL = re.compile(r"NCCL INFO Channel \S+ ?: .* via ([A-Z0-9]+(?:/[A-Za-z]+)?)")


@dataclass(frozen=True)
class NcclLog:
    """NCCL as a rank's log shows it.

    `network` is its network plugin (`IB`, `Socket`); `devices` the RDMA ports it uses, as
    `rocep1s0f0:1`; `transports` what its channels go over (`NET/IB`, `NET/Socket`, `P2P`, `SHM`).
    """

    version: str | None = None
    network: str | None = None
    devices: tuple[str, ...] = ()
    transports: frozenset[str] = frozenset()

    @property
    def uses_sockets(self) -> bool | None:
        """Whether anything goes over TCP; None where the log does not tell."""
        if f"NET/{SOCKET}" in self.transports or self.network == SOCKET:
            return True
        return False if self.network or self.transports else None

    def read(self, text: str) -> Self:
        """Return what is known after one more line."""
        if "NCCL" not in text and "nccl==" not in text:
            return self
        if version := _VERSION.search(text):
            return replace(self, version=version[1] or version[2])
        if network := _NETWORK.search(text):
            # Once a socket, a rank is named for it, whatever its other communicators use.
            return replace(self, network=SOCKET if self.network == SOCKET else network[1])
        if using := _USING.search(text):
            return replace(self, devices=tuple(_DEVICE.findall(using[1])))
        if channel := _CHANNEL.search(text):
            return replace(self, transports=self.transports | {channel[1]})
        return self


def read_nccl(texts: Iterable[str]) -> NcclLog:
    """Read the lines of one rank."""
    found = NcclLog()
    for text in texts:
        found = found.read(text)
    return found


CAUSES: tuple[Cause, ...] = (
    cause(
        "two NCCL libraries",
        r"Duplicate NCCL runtime found",
        "a second libnccl is preloaded or in the library path beside the one that torch brings",
        "mount the one to use over the image's own file, and set neither LD_PRELOAD nor "
        "LD_LIBRARY_PATH for it; on {node}: docker exec CONTAINER grep -h libnccl /proc/*/maps",
    ),
    cause(
        "no RDMA for NCCL",
        r"network IB not found|Failed to initialize (?:any )?NET plugin|NET/IB : No device found",
        "NCCL finds no RDMA device in the container, and may not use sockets in its place",
        "on {node}: ls /dev/infiniband; rdma link; then tetraspark doctor",
    ),
    cause(
        "peer does not answer",
        r"Got completion from peer .*status=(?:IBV_WC_RETRY_EXC_ERR\()?12\b|vendor err 129",
        "a write was repeated until the limit: the peer's rank has ended, or packets are lost on "
        "the way to it (MTU, cable, flow control)",
        "tetraspark status names a rank that ended; else compare both ends: "
        "on {node}: ip -d link; ibv_devinfo | grep active_mtu",
    ),
    cause(
        "GID of another network",
        r"ibv_modify_qp failed with (?:error |101 )?Network is unreachable",
        "the address behind the chosen GID has no route to the peer's",
        "on {node}: ip -4 -br addr; rdma link; then tetraspark doctor",
    ),
    cause(
        "empty GID",
        r"ibv_modify_qp failed with (?:error |61 )?No data available",
        "the chosen entry of the GID table is empty: the address moved or went away",
        "on {node}: ip -4 -br addr; set no GID index anywhere (NCCL_IB_GID_INDEX, /etc/nccl.conf); "
        "then tetraspark serve --replace",
    ),
    cause(
        "nobody at the other end",
        r"ibv_modify_qp failed with (?:error |110 )?Connection timed out",
        "no port answers for the peer's address there: a cable in another port, or devices "
        "paired across networks",
        "on {node}: ip neigh; then compare the cables with the plan: tetraspark doctor",
    ),
    cause(
        "memory cannot be registered",
        r"ibv_reg_mr\w* failed with (?:error |12 )?Cannot allocate memory",
        "the container's memlock limit, or a kernel that gives RDMA no contiguous memory "
        "(7.0.0-10xx with CmaTotal 0)",
        "on {node}: uname -r; grep Cma /proc/meminfo; cat /proc/cmdline; boot with kho=off or a "
        "6.17 kernel",
    ),
    cause(
        "two builds of NCCL",
        r"NET/IB: Invalid listener routing format",
        "a patched library got an address from one of another build: the ranks' libraries differ",
        "bring the same libnccl.so.2 to every node; on {node}: docker exec CONTAINER "
        "sha256sum the file that grep -h libnccl /proc/*/maps names",
    ),
    cause(
        "no such interface",
        r"Unable to find address for: ?\S+",
        "the device that GLOO_SOCKET_IFNAME names is not on this node: the name comes from the "
        "image or from another node",
        "on {node}: ip -4 -br addr; docker image inspect --format '{{{{.Config.Env}}}}' IMAGE",
    ),
)
"""What its errors mean, the cause before its effects."""

EAGER_TREE = cause(
    "trees on a ring",
    r"Connected all rings[\s\S]*?(?:unhandled system error|ncclTransportTreeConnect)",
    "after the rings NCCL connected trees, which need a path between opposite nodes: this "
    "library connects all of them at once",
    "set NCCL_CUMEM_ENABLE=1, NCCL_RUNTIME_CONNECT=1 and NCCL_ALGO=Ring on every rank, or mount "
    "the patched library (fabric.ring.nccl_library_dir); tetraspark logs {rank}",
)


def nccl_causes(topology: str | None) -> tuple[Cause, ...]:
    """Return the causes that apply to a fabric of this topology."""
    return (EAGER_TREE, *CAUSES) if topology == RING else CAUSES
