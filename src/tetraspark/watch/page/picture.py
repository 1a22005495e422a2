"""The fleet as a picture: where each node's box and each lane between two of them stands. Pure.

Lengths are units of the drawing, which is as wide as a phone and is scaled up elsewhere.
"""

import math
from dataclasses import dataclass

from tetraspark.watch.observation import RankSample
from tetraspark.watch.page.lanes import LanePair

WIDTH = 360
BOX = (110, 70)
EDGE = 2
HEIGHTS = {0: 0, 1: 78, 2: 90, 3: 280, 4: 340}
MORE, BARE = 75, 170
"""Of the drawing, by the number of nodes: MORE for each beyond, at most BARE without lanes."""
APART = 14
"""Between two lanes of one pair; closer where they are more than four."""
THIN, THICK = 1.0, 2.75
NAMED = 4
"""Nodes up to which every lane has its rate written on it; beyond, only lanes that are down."""
STAGGER = 34
"""How far apart along a pair its labels stand, or they would meet."""
LIFT = 9
"""From a level lane out to its label, where a pair has two."""
NAME = 13
"""Characters of a name that a box has room for."""
CLEAR_OF_CROSSING = 0.3
"""How far along a diagonal its labels stand, since the other one crosses its middle."""

Place = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A node's box by its middle."""

    rank: RankSample
    x: float
    y: float

    @property
    def name(self) -> str:
        """The node's name, cut in its middle: names of one fleet differ at their ends."""
        name, half = self.rank.node, NAME // 2
        return name if len(name) <= NAME else f"{name[:half]}…{name[-half:]}"


@dataclass(frozen=True)
class Stroke:
    """A lane's line, its width, where its label stands, and whether it has room for its rate."""

    lane: LanePair
    start: Place
    end: Place
    width: float
    label: Place
    labelled: bool


@dataclass(frozen=True)
class Picture:
    """All of it."""

    height: float
    boxes: tuple[Box, ...]
    strokes: tuple[Stroke, ...]


def picture(ranks: tuple[RankSample, ...], lanes: tuple[LanePair, ...]) -> Picture:
    """Place nodes clockwise from the upper left, and lanes between those that are there."""
    height = HEIGHTS.get(len(ranks), HEIGHTS[NAMED] + MORE * (len(ranks) - NAMED))
    if not lanes and len(ranks) <= NAMED:
        height = min(height, BARE)
    places = _places(len(ranks), height)
    boxes = tuple(Box(rank, *place) for rank, place in zip(ranks, places, strict=True))
    # A rank's lanes to itself or to one that nobody told of have nowhere to go.
    at = {box.rank.rank: (box.x, box.y) for box in boxes}
    drawn = [one for one in lanes if one.low in at and one.high in at and one.low != one.high]
    busiest = max((one.rate or 0.0 for one in drawn), default=0.0)
    order = [rank.rank for rank in ranks]
    strokes = tuple(_stroke(one, drawn, at, order, busiest) for one in drawn)
    return Picture(height, boxes, strokes)


def _places(count: int, height: float) -> list[Place]:
    across, down = (WIDTH - BOX[0]) / 2 - EDGE, (height - BOX[1]) / 2 - EDGE
    if count == 1:
        return [(WIDTH / 2, height / 2)]
    # On the corners where there are four; else on an ellipse.
    reach = math.sqrt(2) if count == 4 else 1.0
    start = {2: -math.pi, 3: -math.pi / 2}.get(count, -math.pi * 3 / 4)
    return [
        (
            WIDTH / 2 + across * reach * math.cos(start + 2 * math.pi * index / count),
            height / 2 + down * reach * math.sin(start + 2 * math.pi * index / count),
        )
        for index in range(count)
    ]


def _stroke(
    one: LanePair,
    drawn: list[LanePair],
    at: dict[int, Place],
    order: list[int],
    busiest: float,
) -> Stroke:
    start, end = at[one.low], at[one.high]
    beside = [other for other in drawn if (other.low, other.high) == (one.low, one.high)]
    index, count = beside.index(one), len(beside)
    shift = (index - (count - 1) / 2) * min(APART, 4 * APART / count)
    x, y = _across(start, end, shift)
    start, end = (start[0] + x, start[1] + y), (end[0] + x, end[1] + y)
    crossed = len(order) == NAMED and abs(order.index(one.low) - order.index(one.high)) == 2
    busy = (one.rate or 0.0) / busiest if busiest else 0.0
    return Stroke(
        lane=one,
        start=start,
        end=end,
        width=THIN + (THICK - THIN) * math.sqrt(busy),
        label=_label(start, end, index, count, CLEAR_OF_CROSSING if crossed else 0.5),
        labelled=len(order) <= NAMED and one.rate is not None,
    )


def _across(start: Place, end: Place, shift: float) -> Place:
    """Return the way from a pair's middle line to one of its lanes."""
    wide, high = end[0] - start[0], end[1] - start[1]
    length = math.hypot(wide, high)
    return -high / length * shift, wide / length * shift


def _label(start: Place, end: Place, index: int, count: int, along: float) -> Place:
    """Return where a lane's label stands: outside a level pair, else staggered along it."""
    wide, high = end[0] - start[0], end[1] - start[1]
    outward = 1 if index == (wide > 0) else -1
    if count == 2 and abs(high) < abs(wide) / 2:
        return start[0] + wide * along, start[1] + high * along + LIFT * outward
    if count > 1:
        along += STAGGER * (index % 2 - 0.5) / math.hypot(wide, high)
    return start[0] + wide * along, start[1] + high * along
