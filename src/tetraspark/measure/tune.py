"""From measured times to thresholds, so that noise moves none of them. Pure."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

MARGIN = 0.05
"""How much faster is faster: below it, a difference is taken for noise."""
RUN = 3
"""Sizes in a row, each twice the one before, at which two-shot must be faster by the margin."""
APART = 1
"""Sizes by which a threshold of one repeat may differ from that of all of them."""


@dataclass(frozen=True)
class Timing:
    """Microseconds of an all-reduce of `size` bytes, each that of the slowest rank."""

    size: int
    one_shot: float
    two_shot: float
    rival: float

    def ours(self, two_shot_from: int | None) -> float:
        """Return the time of the algorithm that a threshold chooses."""
        two = two_shot_from is not None and self.size >= two_shot_from
        return self.two_shot if two else self.one_shot


Curve = tuple[Timing, ...]
"""One timing a size, by size."""


@dataclass(frozen=True)
class Decision:
    """Both thresholds in bytes; None: two-shot is faster nowhere, the rival slower nowhere."""

    two_shot_from: int | None
    reduce_limit: int | None


def two_shot_from(curve: Curve) -> int | None:
    """Return the smallest size from which two-shot is faster, or None.

    There and at the next `RUN` - 1 sizes it is faster by the margin, and at no larger size slower
    by it: the threshold sends all of them that way.
    """
    faster = [one.two_shot <= one.one_shot * (1 - MARGIN) for one in curve]
    slower = [one.two_shot > one.one_shot * (1 + MARGIN) for one in curve]
    for index in range(len(curve) - RUN + 1):
        if all(faster[index : index + RUN]) and not any(slower[index:]):
            return curve[index].size
    return None


def reduce_limit(curve: Curve, two_from: int | None) -> int | None:
    """Return the largest size at which ours is faster than the rival, or None.

    At it, ours is faster by the margin; at no smaller size is it slower by it.
    """
    limit = None
    for one in curve:
        if one.ours(two_from) > one.rival * (1 + MARGIN):
            break
        if one.ours(two_from) <= one.rival * (1 - MARGIN):
            limit = one.size
    return limit


def decide(curve: Curve) -> Decision:
    """Return the thresholds of one curve."""
    two_from = two_shot_from(curve)
    return Decision(two_from, reduce_limit(curve, two_from))


def typical(repeats: Sequence[Curve]) -> Curve:
    """Return the curve of the medians over repeats of the same sizes."""

    def middle(same: Iterable[Timing], time: Callable[[Timing], float]) -> float:
        return statistics.median(map(time, same))

    return tuple(
        Timing(
            same[0].size,
            middle(same, lambda one: one.one_shot),
            middle(same, lambda one: one.two_shot),
            middle(same, lambda one: one.rival),
        )
        for same in zip(*repeats, strict=True)
    )


def disagreements(repeats: Sequence[Curve], decision: Decision) -> tuple[str, ...]:
    """Say of each repeat whose own thresholds are far from those of all together, what they are."""
    sizes = [one.size for one in repeats[0]]
    found = []
    for number, curve in enumerate(repeats, 1):
        own = decide(curve)
        # None is one step beyond the last size that could have been a threshold.
        last = len(sizes) - RUN + 1
        differs = {
            "two-shot from": (own.two_shot_from, decision.two_shot_from, last),
            "ours up to": (own.reduce_limit, decision.reduce_limit, -1),
        }
        words = [
            f"{what} {'nowhere' if one is None else f'{one} bytes'}"
            for what, (one, other, none) in differs.items()
            if _apart(sizes, one, other, none)
        ]
        if words:
            found.append(f"repeat {number}: {', '.join(words)}")
    return tuple(found)


def agree(repeats: Sequence[Curve], decision: Decision) -> bool:
    """Tell whether no more than a third of the repeats disagrees: medians bear that."""
    return len(disagreements(repeats, decision)) * 3 <= len(repeats)


def _apart(sizes: Sequence[int], one: int | None, other: int | None, none: int) -> bool:
    first, second = (none if size is None else sizes.index(size) for size in (one, other))
    return abs(first - second) > APART
