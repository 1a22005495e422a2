"""Cabling: what is joined to what, by the wire; the shape of it, its order and orientation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tetraspark.fabric.cabling_wire import Cage
from tetraspark.fabric.function import Function

Shape = Literal["switched", "pair", "ring", "line", "mixed", "unknown"]


@dataclass(frozen=True)
class Segment:
    """Cages that share a wire: two of a cable, or all that a switch joins.

    `switch` is what a switch calls itself over LLDP, "" without one; `how` names the evidence:
    `lldp`, `neighbours`, or `subnets` where nothing but the addresses says so.
    """

    ends: tuple[Cage, ...]
    switch: str
    how: tuple[str, ...]

    @property
    def cable(self) -> bool:
        """Whether it is one cable between two cages."""
        return len(self.ends) == 2 and not self.switch

    @property
    def on_the_wire(self) -> bool:
        """Whether anything but addresses says so."""
        return self.how != ("subnets",)

    def __str__(self) -> str:
        return " - ".join(map(str, self.ends)) + (f" on {self.switch}" if self.switch else "")


@dataclass(frozen=True)
class Cabling:
    """The cabling of a fleet. `nodes` is in rank order, those that were not seen included.

    `silent` are cages with a link whose other end nothing shows; `contradicted` pairs of which
    the first hears the second, and the second somebody else. `toward` is who a silent
    cage hears over LLDP that was not looked at.
    """

    nodes: tuple[str, ...]
    cages: Mapping[Cage, tuple[Function, ...]]
    segments: tuple[Segment, ...]
    silent: tuple[Cage, ...]
    contradicted: tuple[tuple[Cage, Cage], ...]
    absent: tuple[str, ...]
    toward: Mapping[Cage, str]

    @property
    def complete(self) -> bool:
        """Whether every node and every link was seen on the wire."""
        wire = all(one.on_the_wire for one in self.segments)
        return wire and not (self.absent or self.silent or self.contradicted)

    @property
    def shape(self) -> Shape:
        """What the segments make, of those that were seen."""
        if not self.segments:
            return "unknown"
        cables = [one for one in self.segments if one.cable]
        if not cables:
            return "switched"
        near = self.neighbours()
        if len(cables) < len(self.segments) or not _connected(near):
            return "mixed"
        joined = sum(len(far) for far in near.values()) // 2
        degrees = sorted(len(far) for far in near.values())
        if len(near) == 2 and degrees == [1, 1]:
            return "pair"
        if joined != len(cables) or set(near) != set(self.nodes) - set(self.absent):
            return "mixed"
        if degrees[0] == degrees[-1] == 2:
            return "ring"
        return "line" if degrees[:3] == [1, 1, 2] and degrees[-1] == 2 else "mixed"

    def neighbours(self) -> dict[str, set[str]]:
        """Return the nodes at the other ends of each node's cables."""
        found: dict[str, set[str]] = {}
        for first, second in (one.ends for one in self.segments if one.cable):
            found.setdefault(first.node, set()).add(second.node)
            found.setdefault(second.node, set()).add(first.node)
        return found

    def cable(self, first: str, second: str) -> tuple[Cage, Cage] | None:
        """Return the ends of the cable between two nodes, the first node's first."""
        for ends in (one.ends for one in self.segments if one.cable):
            if {end.node for end in ends} == {first, second}:
                return (ends[0], ends[1]) if ends[0].node == first else (ends[1], ends[0])
        return None

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes around a ring or along a line, () for any other shape.

        A ring begins at rank 0 and goes out of its cage 0, where the orientation is uniform.
        """
        near = self.neighbours()
        if self.shape == "line":
            start = next(node for node in self.nodes if len(near.get(node, ())) == 1)
            return _walk(near, start, next(iter(near[start])))
        if self.shape != "ring":
            return ()
        first = next(node for node in self.nodes if node in near)
        ways = [_walk(near, first, far) for far in sorted(near[first], key=self.nodes.index)]
        return next((way for way in ways if self._turns(way) == {(0, 1)}), ways[0])

    @property
    def orientation(self) -> Literal["uniform", "alternating", "mixed"] | None:
        """How the cages of a ring are joined: 0 to 1 everywhere, like to like, or neither."""
        if self.shape != "ring":
            return None
        turns = self._turns(self.order)
        if turns in ({(0, 1)}, {(1, 0)}):
            return "uniform"
        return "alternating" if turns <= {(0, 0), (1, 1)} else "mixed"

    def _turns(self, way: Sequence[str]) -> set[tuple[int, int]]:
        """Return the numbers of the cages that each cable joins, walking that way round."""
        found = set()
        for node, after in zip(way, [*way[1:], way[0]], strict=True):
            ends = self.cable(node, after)
            found |= {(ends[0].number, ends[1].number)} if ends else set()
        return found

    @property
    def in_rank_order(self) -> bool | None:
        """Whether ranks follow the ring, either way round; None for any other shape."""
        if self.shape != "ring":
            return None
        near = self.neighbours()
        ranks = [node for node in self.nodes if node in near]
        return all(b in near[a] for a, b in zip(ranks, [*ranks[1:], ranks[0]], strict=True))


def _connected(near: Mapping[str, set[str]]) -> bool:
    left = [next(iter(near))]
    met = set(left)
    while left:
        fresh = near[left.pop()] - met
        met |= fresh
        left += fresh
    return met == set(near)


def _walk(near: Mapping[str, set[str]], start: str, after: str) -> tuple[str, ...]:
    way = [start, after]
    while len(way) < len(near):
        way.append(next(node for node in sorted(near[way[-1]]) if node != way[-2]))
    return tuple(way)
