"""Which devices carry which lane between which ranks: a pure value, the same on every rank."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD, Routes

MAX_DEVICES = 4

Ends = tuple[int, int]
"""Device of the lower rank and of the higher one, as indices into their lists."""


@dataclass(frozen=True)
class Wiring:
    """Nodes, their devices, and the two ends of every lane of every pair.

    `nodes` and `devices` are by rank. `pairs` maps (low rank, high rank) to the pair's lanes,
    numbered from 0; a pair may have fewer than others. Both ends of a lane may be different
    devices, and opposite nodes of a ring use one cable of each neighbour. Raises ValueError.
    """

    nodes: tuple[str, ...]
    devices: tuple[tuple[Choice, ...], ...]
    pairs: tuple[tuple[tuple[int, int], tuple[Ends, ...]], ...]

    def __post_init__(self) -> None:
        world = len(self.nodes)
        if not 2 <= world <= MAX_WORLD or len(self.devices) != world:
            raise ValueError(
                f"{world} nodes, devices of {len(self.devices)}: wanted 2..{MAX_WORLD}"
            )
        if [pair for pair, _ in self.pairs] != list(combinations(range(world), 2)):
            raise ValueError("wiring must name every pair of ranks once, in ascending order")
        for node, devices in zip(self.nodes, self.devices, strict=True):
            names = [(one.device, one.port) for one in devices]
            if not 1 <= len(names) <= MAX_DEVICES or len(set(names)) != len(names):
                raise ValueError(f"node {node}: wanted 1..{MAX_DEVICES} devices, each once")
        for pair, lanes in self.pairs:
            self._check(pair, lanes)

    def _check(self, pair: tuple[int, int], lanes: tuple[Ends, ...]) -> None:
        if not 1 <= len(lanes) <= MAX_LANES or len(set(lanes)) != len(lanes):
            raise ValueError(f"pair {pair}: wanted 1..{MAX_LANES} lanes, each once")
        for ends in lanes:
            for rank, end in zip(pair, ends, strict=True):
                if not 0 <= end < len(self.devices[rank]):
                    raise ValueError(f"pair {pair}: node {self.nodes[rank]} has no device {end}")

    @classmethod
    def uniform(cls, nodes: Sequence[str], devices: Sequence[Sequence[Choice]]) -> "Wiring":
        """Join device l of every node to device l of every other, as a switch does."""
        lanes = min(map(len, devices))
        pairs = tuple(
            (pair, tuple((lane, lane) for lane in range(lanes)))
            for pair in combinations(range(len(nodes)), 2)
        )
        return cls(tuple(nodes), tuple(map(tuple, devices)), pairs)

    @property
    def world(self) -> int:
        """Number of ranks."""
        return len(self.nodes)

    @property
    def lanes(self) -> int:
        """Largest number of lanes of a pair."""
        return max(len(lanes) for _, lanes in self.pairs)

    def routes(self) -> Routes:
        """Return the routes that use every lane; the first one rotates, so odd stripes spread."""
        order = tuple(
            (pair, tuple((sum(pair) + i) % len(lanes) for i in range(len(lanes))))
            for pair, lanes in self.pairs
        )
        return Routes(self.world, self.lanes, order)

    def ends(self, rank: int, peer: int) -> tuple[Ends, ...]:
        """Return (own device, peer's device) of each lane to a peer."""
        wanted = (min(rank, peer), max(rank, peer))
        lanes = next(lanes for pair, lanes in self.pairs if pair == wanted)
        return lanes if rank < peer else tuple((high, low) for low, high in lanes)

    def used_together(self, rank: int) -> list[tuple[int, ...]]:
        """Return the own devices of each peer's lanes."""
        peers = (peer for peer in range(self.world) if peer != rank)
        return [tuple(own for own, _ in self.ends(rank, peer)) for peer in peers]

    def to_json(self) -> str:
        """Return the wiring as compact JSON, for a variable."""
        told = {
            "nodes": self.nodes,
            "devices": [[str(one) for one in devices] for devices in self.devices],
            "lanes": [lanes for _, lanes in self.pairs],
        }
        return json.dumps(told, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Wiring":
        """Parse what `to_json` wrote. Raises ValueError."""
        try:
            told = json.loads(text)
            nodes = tuple(map(str, told["nodes"]))
            devices = tuple(tuple(map(Choice.parse, one)) for one in told["devices"])
            lanes = [tuple((int(low), int(high)) for low, high in one) for one in told["lanes"]]
            pairs = list(combinations(range(len(nodes)), 2))
            return cls(nodes, devices, tuple(zip(pairs, lanes, strict=True)))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not a wiring: {text[:80]!r} ({error})") from None

    def digest(self) -> str:
        """Return a hash that differs when anything does."""
        return hashlib.sha256(repr(self).encode()).hexdigest()
