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
    (x1, y1), (x2, y2) = at[one.low], at[one.high]
    beside = [other for other in drawn if (other.low, other.high) == (one.low, one.high)]
    from_middle = beside.index(one) - (len(beside) - 1) / 2
    shift = from_middle * min(APART, 4 * APART / len(beside))
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    across = (-(y2 - y1) / length * shift, (x2 - x1) / length * shift)
    steps = abs(order.index(one.low) - order.index(one.high))
    crossed = len(order) == NAMED and steps == 2
    lifted = len(beside) == 2 and abs(y2 - y1) < abs(x2 - x1) / 2
    lift = math.copysign(LIFT, across[1]) if lifted else 0.0
    stagger = 0.0 if lifted else STAGGER * _turn(from_middle, len(beside)) / length
    along = (CLEAR_OF_CROSSING if crossed else 0.5) + stagger
    busy = (one.rate or 0.0) / busiest if busiest else 0.0
    return Stroke(
        lane=one,
        start=(x1 + across[0], y1 + across[1]),
        end=(x2 + across[0], y2 + across[1]),
        width=THIN + (THICK - THIN) * math.sqrt(busy),
        label=(x1 + (x2 - x1) * along + across[0], y1 + (y2 - y1) * along + across[1] + lift),
        labelled=len(order) <= NAMED and one.rate is not None,
    )


def _turn(from_middle: float, lanes: int) -> float:
    """Return which of two places along its lane a label takes: neighbours take different ones."""
    if lanes == 1:
        return 0.0
    return 0.5 if round(from_middle + (lanes - 1) / 2) % 2 else -0.5
