"""The smallest re-cabling: which plugs to move so that cages are joined as they should be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tetraspark.fabric.cabling_wire import Cage

Pair = tuple[Cage, Cage]


@dataclass(frozen=True)
class Move:
    """One thing to do by hand: `swap` two plugs, `move` a plug to a free cage, `add` a cable."""

    kind: Literal["swap", "move", "add"]
    first: Cage
    second: Cage

    def __str__(self) -> str:
        if self.kind == "add":
            return f"plug a cable into {self.first} and {self.second}"
        if self.kind == "move":
            return f"move the plug in {self.first} to {self.second}"
        if self.first.node == self.second.node:
            return f"swap the two cables of {self.first.node}"
        return f"swap the plugs in {self.first} and {self.second}"


def moves(cables: Iterable[Pair], wanted: Iterable[Pair]) -> tuple[Move, ...]:
    """Return as few moves as there can be that make `wanted` of `cables`.

    Each cage is at most once in either. A move makes one wanted pair and breaks none. With all
    plugs in, cables that are mixed up among k cages each way take k - 1 swaps, and no fewer: a
    swap can part such a ring of k in two, never in three. Swaps within one node come first.
    """
    far: dict[Cage, Cage] = {}
    for first, second in cables:
        far[first], far[second] = second, first
    left = [pair for pair in wanted if far.get(pair[0]) != pair[1]]
    found = []
    while left:
        move = min((_move(far, pair) for pair in left), key=_trouble)
        _apply(far, move)
        found.append(move)
        left = [one for one in left if far.get(one[0]) != one[1]]
    return tuple(found)


def _trouble(move: Move) -> tuple[bool, bool]:
    return move.kind != "swap", move.first.node != move.second.node


def _move(far: dict[Cage, Cage], pair: Pair) -> Move:
    """Return the move that makes one pair."""
    first, second = pair
    if first not in far and second not in far:
        return Move("add", first, second)
    if first not in far:
        return Move("move", far[second], first)
    if second not in far:
        return Move("move", far[first], second)
    ways = (Move("swap", second, far[first]), Move("swap", first, far[second]))
    return next((one for one in ways if one.first.node == one.second.node), ways[0])


def _apply(far: dict[Cage, Cage], move: Move) -> None:
    first, second = move.first, move.second
    if move.kind == "add":
        far[first], far[second] = second, first
        return
    ends = (far.pop(first), far.pop(second, None))
    for cage, end in zip((second, first), ends, strict=True):
        if end is not None:
            far[cage], far[end] = end, cage


def uniform_rings(nodes: Sequence[str]) -> tuple[tuple[Pair, ...], ...]:
    """Return the two rings in rank order that join cage 0 to cage 1 everywhere."""
    after = [*nodes[1:], nodes[0]]
    ways = tuple(zip(nodes, after, strict=True))
    return (
        tuple((Cage(a, 0), Cage(b, 1)) for a, b in ways),
        tuple((Cage(a, 1), Cage(b, 0)) for a, b in ways),
    )


def fewest(cables: Sequence[Pair], wanted: Iterable[Sequence[Pair]]) -> tuple[Move, ...]:
    """Return the moves to whichever of several cablings takes the fewest."""
    return min((moves(cables, one) for one in wanted), key=len)
