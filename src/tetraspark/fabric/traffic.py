"""Traffic over every rail with perftest's `ib_write_bw`: what to start where, or why not to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from tetraspark.collectives.gid import Gid
from tetraspark.errors import Problem
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.fabric.inventory_json import answer, parsed, tables, whole, word
from tetraspark.fleet.command import NodeCommand
from tetraspark.fleet.facts import Facts, Wanted

PROGRAM = "/usr/bin/ib_write_bw"
FIRST_PORT = 18515
"""perftest's own default; each flow takes the next one."""
MESSAGE = 1 << 20
"""Bytes of one write. Each end of a flow pins two of them."""
LONGER = 30
"""Seconds that a flow may take besides its own, to set up and to end."""
LEAST_AVAILABLE = 4 << 30
"""Bytes of memory that must be available on a node before anything is pinned there."""
LARGEST = 1 << 30
"""Bytes that all flows of one node may pin together."""

WANTED = Wanted(
    files=("/proc/meminfo",),
    sizes=(PROGRAM,),
    commands={"queue pairs": ("rdma", "-j", "res", "show", "qp")},
)
"""What `refusals` reads, besides the fabric itself."""


@dataclass(frozen=True)
class Flow:
    """One rail under load: `ib_write_bw` on two nodes, both ways at once.

    `speed` is that of the slower end's link in Gb/s, 0 where that is not shown.
    """

    server: str
    client: str
    rail: str
    speed: float
    listen: NodeCommand
    connect: NodeCommand


def flows(
    nodes: Sequence[str],
    fabrics: Mapping[str, NodeFabric],
    devices: Mapping[str, tuple[str, ...]],
    seconds: int,
) -> tuple[Flow, ...]:
    """Return a flow for each two functions that share a subnet and face each other.

    On a switch each node has one to the next in rank order, on cables both ends have one. Only
    RDMA devices that the site names take part, and only those with a usable GID.
    """
    pairs = list(_pairs(nodes, fabrics, devices))
    return tuple(
        _flow(number, near, far, seconds) for number, (near, far) in enumerate(pairs, FIRST_PORT)
    )


@dataclass(frozen=True)
class End:
    """One end of a flow, with the GID that its address has now."""

    node: str
    function: Function
    gid: Gid


def _pairs(
    nodes: Sequence[str],
    fabrics: Mapping[str, NodeFabric],
    devices: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[End, End]]:
    """Return each two ends of a flow: in every subnet of a segment, one node and the next."""
    cabling = read_cabling(nodes, fabrics)
    for segment in cabling.segments:
        subnets: dict[IPv4Network, list[End]] = {}
        for cage in sorted(segment.ends, key=lambda cage: nodes.index(cage.node)):
            for one in cabling.cages[cage]:
                if one.up and one.gid and one.rdma in devices.get(cage.node, ()):
                    subnets.setdefault(one.addresses[0].network, []).append(
                        End(cage.node, one, one.gid)
                    )
        for ends in subnets.values():
            after = [*ends[1:], ends[0]] if len(ends) > 2 else ends[1:]
            yield from (two for two in zip(ends, after, strict=False) if two[0].node != two[1].node)


def _flow(port: int, near: End, far: End, seconds: int) -> Flow:
    limit = seconds + LONGER
    connect = (*_command(far, port, seconds), str(near.function.addresses[0].ip))
    return Flow(
        server=near.node,
        client=far.node,
        rail=f"{near.node} {near.function.rdma} - {far.node} {far.function.rdma}",
        speed=min(one.function.speed or 0 for one in (near, far)) / 1000,
        listen=NodeCommand(_command(near, port, seconds), timeout=limit),
        connect=NodeCommand(connect, timeout=limit),
    )


def _command(end: End, port: int, seconds: int) -> tuple[str, ...]:
    # A server whose client never came would wait on the node for ever.
    return (
        *("timeout", str(seconds + LONGER - 5), PROGRAM, "--ib-dev", str(end.function.rdma)),
        *("--gid-index", str(end.gid.index), "--port", str(port)),
        *("--size", str(MESSAGE), "--duration", str(seconds)),
        *("--bidirectional", "--report_gbits", "--CPU-freq"),
    )


def refusals(facts: Mapping[str, Facts], planned: Sequence[Flow]) -> list[Problem]:
    """Return why this traffic must not be started: no program, no memory, or a server runs."""
    return [
        problem
        for node, one in facts.items()
        for problem in _refused(node, one, [f for f in planned if node in (f.server, f.client)])
    ]


def _refused(node: str, facts: Facts, own: Sequence[Flow]) -> Iterator[Problem]:
    if not own:
        seen = "no function of it shares a subnet with a neighbour's"
        yield Problem(node, seen, "a rail to load", "tetraspark fabric show")
        return
    if PROGRAM not in facts.sizes:
        fix = "sudo apt-get install perftest there, or leave --traffic out and send requests"
        yield Problem(node, f"no {PROGRAM}", "perftest", fix)
    busy = _busy(parsed(answer(facts, "queue pairs")))
    if busy is None:
        fix = f"on {node}: rdma res show qp"
        yield Problem(node, "it cannot be told whether a server runs", "queue pairs", fix)
    elif busy:
        fix = "tetraspark stop, or leave --traffic out: requests are traffic as well"
        yield Problem(node, f"RDMA connections are open: {', '.join(busy)}", "an idle fabric", fix)
    available = memory_available(facts.files.get("/proc/meminfo", ""))
    pinned = 2 * MESSAGE * len(own)
    wanted = f"{LEAST_AVAILABLE >> 30} GiB available"
    if available is None:
        yield Problem(node, "MemAvailable is not shown", wanted, "grep Mem /proc/meminfo")
    elif available < LEAST_AVAILABLE or pinned > min(LARGEST, available // 10):
        seen = f"{available / 2**30:.1f} GiB available, {pinned >> 20} MiB to pin"
        yield Problem(node, seen, wanted, "tetraspark stop; docker ps")


def _busy(value: object) -> list[str] | None:
    """Return who has reliable connections open, or None where the kernel does not say."""
    if not isinstance(value, list):
        return None
    connected = [one for one in tables(value) if word(one.get("type")) == "RC"]
    names = {
        (word(one.get("comm")) or "another user's", whole(one.get("pid"))) for one in connected
    }
    return sorted(f"{name} (pid {pid})" if pid else name for name, pid in names)


def memory_available(meminfo: str) -> int | None:
    """Return MemAvailable in bytes: on unified memory, `free` memory says little."""
    match = re.search(r"(?m)^MemAvailable:\s+([0-9]+) kB$", meminfo)
    return int(match[1]) << 10 if match else None
