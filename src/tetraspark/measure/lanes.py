"""Set RDMA lanes up, prove them with patterns, and measure each alone."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from tetraspark.collectives.group import Group
from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.opening import Exchange
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.transport import Transport
from tetraspark.collectives.verbs import VerbsTransport
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import Wiring
from tetraspark.errors import Problem, RunError

SMALL_BYTES = 16
WARM_UP = 5


@dataclass(frozen=True)
class LaneSpeed:
    """One lane of every pair, measured alone; the slowest rank's medians.

    `small_us`: an all-reduce of 16 bytes, microseconds. `gigabytes_per_s`: what a node sends
    while every rank gathers large shards, in 10^9 bytes.
    """

    lane: int
    devices: tuple[str, ...]
    small_us: float
    gigabytes_per_s: float


@dataclass(frozen=True)
class LanesReport:
    """What was found. `ranks` are the transports' own accounts, by rank; counters are theirs."""

    world: int
    rounds: int
    large_bytes: int
    open_s: float
    ranks: tuple[dict[str, Any], ...]
    lanes: tuple[LaneSpeed, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return asdict(self)


@dataclass(frozen=True)
class Qualification:
    """How to qualify: `rounds` timed operations a size, shards of `large_bytes`."""

    options: VerbsOptions
    rounds: int = 100
    large_bytes: int = 1 << 20

    def settings(self, wiring: Wiring) -> Settings:
        """Return the settings of a group over this wiring."""
        return Settings(
            max_reduce_bytes=1 << 16,
            max_gather_bytes=self.large_bytes,
            lanes=wiring.lanes,
            routes=wiring.routes(),
            late_limit_s=30.0,
        )

    def transport(self, rank: int, wiring: Wiring) -> Transport:
        """Return the transport of one rank."""
        return VerbsTransport(rank, wiring, self.options)


def agree_on_wiring(
    exchange: Exchange, node: str, devices: Sequence[Choice], how: Qualification
) -> Wiring:
    """Tell the others this node's devices; joins device l of each to device l of every other.

    Raises RunError, the same on every rank, where the nodes were told what does not fit together.
    """
    own = {
        "--node": node,
        "--devices": [str(device) for device in devices],
        "--min-mtu": how.options.min_mtu,
        "--rounds": how.rounds,
    }
    told = [json.loads(data) for data in exchange(json.dumps(own).encode())]
    nodes = [one["--node"] for one in told]
    problems = [
        *_unequal("--devices", nodes, [f"{len(one['--devices'])} devices" for one in told]),
        *_unequal("--min-mtu", nodes, [one["--min-mtu"] for one in told]),
        *_unequal("--rounds", nodes, [one["--rounds"] for one in told]),
    ]
    if len(set(nodes)) != len(nodes):
        fix = '--node "$(hostname)" on every node'
        problems.append(Problem("--node", ", ".join(nodes), "a name of its own for each", fix))
    if problems:
        raise RunError(*problems)
    return Wiring.uniform(
        nodes, [[Choice.parse(text) for text in one["--devices"]] for one in told]
    )


def _unequal(option: str, nodes: Sequence[str], values: Sequence[object]) -> list[Problem]:
    if len(set(values)) == 1:
        return []
    seen = ", ".join(f"{node} {value}" for node, value in zip(nodes, values, strict=True))
    fix = f"make {option} alike on every node, then start every rank again"
    return [Problem(option, seen, "the same on every node", fix)]


def only_lane(wiring: Wiring, lane: int) -> Wiring:
    """Return the wiring with one lane of each pair."""
    pairs = tuple((pair, (lanes[lane],)) for pair, lanes in wiring.pairs)
    return Wiring(wiring.nodes, wiring.devices, pairs)


def qualify_lanes(rank: int, exchange: Exchange, wiring: Wiring, how: Qualification) -> LanesReport:
    """Open over all lanes (checks, connections, patterns through every slot), then time each.

    Returns the same report on every rank. Raises RefusedError, CollectiveError or OSError.
    """
    start = time.monotonic()
    with _open(rank, exchange, wiring, how) as group:
        open_s = time.monotonic() - start
        account = json.dumps(group.state()["details"]).encode()
        ranks = tuple(json.loads(data) for data in exchange(account))
    lanes = tuple(
        _measure(rank, exchange, wiring, how, lane)
        for lane in range(min(len(lanes) for _, lanes in wiring.pairs))
    )
    return LanesReport(wiring.world, how.rounds, how.large_bytes, open_s, ranks, lanes)


def _open(rank: int, exchange: Exchange, wiring: Wiring, how: Qualification) -> Group:
    settings, transport = how.settings(wiring), how.transport(rank, wiring)
    return Group.open(rank, wiring.world, exchange, settings, transport)


def _measure(
    rank: int, exchange: Exchange, wiring: Wiring, how: Qualification, lane: int
) -> LaneSpeed:
    small = torch.ones(SMALL_BYTES // 4)
    large = torch.zeros(how.large_bytes, dtype=torch.uint8)
    with _open(rank, exchange, only_lane(wiring, lane), how) as group:
        quick = _median_s(lambda: group.all_reduce(small), how.rounds)
        long = _median_s(lambda: group.all_gather(large), max(5, how.rounds // 10))
        everyone = [json.loads(data) for data in exchange(json.dumps([quick, long]).encode())]
    sent = (wiring.world - 1) * how.large_bytes
    return LaneSpeed(
        lane=lane,
        devices=tuple(devices[lane].device for devices in wiring.devices),
        small_us=max(one[0] for one in everyone) * 1e6,
        gigabytes_per_s=sent / max(one[1] for one in everyone) / 1e9,
    )


def _median_s(operation: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(WARM_UP + rounds):
        start = time.perf_counter()
        operation()
        times.append(time.perf_counter() - start)
    return statistics.median(times[WARM_UP:])
