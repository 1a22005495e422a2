"""Order: do the ranks follow each other as the cables do, and which ends does each cable join."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tetraspark.errors import Problem
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_wire import Cage
from tetraspark.ring.end import SHOW, End

MIN_NODES, MAX_NODES = 3, 8

Pair = frozenset[str]
"""The names of two nodes."""


@dataclass(frozen=True)
class Joint:
    """Cable `number` with its ends: `lower` of rank `number`, `upper` of the next rank."""

    number: int
    lower: End
    upper: End


def find_joints(
    cabling: Cabling, ends: Mapping[Cage, End], lost: int | None
) -> tuple[tuple[Joint, ...], list[Problem]]:
    """Return the cables in rank order, without the lost one, or why there is no ring.

    Frames go from rank to rank, so the ranks must follow the cables: any start, either sense.
    """
    names = cabling.nodes
    world = len(names)
    if not MIN_NODES <= world <= MAX_NODES:
        size = f"{MIN_NODES} to {MAX_NODES} nodes"
        return (), [Problem("nodes of the site", str(world), size, "correct [[nodes]]")]
    if lost is not None and not 0 <= lost < world:
        one = f"a cable of 0 to {world - 1}; cable c joins rank c and the next"
        return (), [Problem("--lost-cable", str(lost), one, "--lost-cable 0")]
    pairs = _cables(cabling, ends)
    gone = None if lost is None else frozenset((names[lost], names[(lost + 1) % world]))
    wanted = {frozenset((names[c], names[(c + 1) % world])): c for c in range(world) if c != lost}
    problems = [_contradiction(*one) for one in cabling.contradicted
                if frozenset(cage.node for cage in one) != gone]  # fmt: skip
    problems += [_switched(one.ends, one.switch) for one in cabling.segments if not one.cable]
    problems += [_doubled(pair) for pair, cables in pairs.items() if len(cables) > 1]
    missing = [number for pair, number in wanted.items() if pair not in pairs]
    if missing and cabling.shape == "ring" and lost is None and set(pairs) >= _round(cabling):
        problems.append(_other_order(cabling))
    else:
        problems += [_missing(cabling, ends, number) for number in missing]
        problems += [_extra(pair) for pair in pairs if pair not in wanted and pair != gone]
    if problems:
        return (), problems
    return tuple(_joint(names[c], c, ends, pairs[pair][0]) for pair, c in wanted.items()), []


def _cables(cabling: Cabling, ends: Mapping[Cage, End]) -> dict[Pair, list[tuple[Cage, Cage]]]:
    """Return the cables between ends that may be used, by the nodes they join."""
    found: dict[Pair, list[tuple[Cage, Cage]]] = {}
    for first, second in (one.ends for one in cabling.segments if one.cable):
        if first in ends and second in ends:
            found.setdefault(frozenset((first.node, second.node)), []).append((first, second))
    return found


def _round(cabling: Cabling) -> set[Pair]:
    order = cabling.order
    return {frozenset(pair) for pair in zip(order, [*order[1:], order[0]], strict=True)}


def _joint(node: str, number: int, ends: Mapping[Cage, End], cable: tuple[Cage, Cage]) -> Joint:
    lower, upper = sorted(cable, key=lambda cage: cage.node != node)
    return Joint(number, ends[lower], ends[upper])


def _contradiction(cage: Cage, other: Cage) -> Problem:
    seen = f"hears {other}, which hears somebody else"
    fix = "the cable was moved lately: ping over it from both ends, then plan again"
    return Problem(str(cage), seen, "two ends that hear each other", fix)


def _switched(cages: Sequence[Cage], switch: str) -> Problem:
    who = ", ".join(map(str, cages))
    seen = f"joined by {switch}" if switch else "share one wire"
    return Problem(who, seen, "a cable from one cage to another", SHOW)


def _doubled(pair: Pair) -> Problem:
    who = " and ".join(sorted(pair))
    fix = "move one end of one of them to the node that lacks a cable"
    return Problem(who, "two cables between them", "one cable to each of two other nodes", fix)


def _extra(pair: Pair) -> Problem:
    who = " and ".join(sorted(pair))
    return Problem(who, "a cable that is not part of the ring", "two cables a node", "unplug it")


def _other_order(cabling: Cabling) -> Problem:
    listed = ", ".join(cabling.order)
    seen = f"{', '.join(cabling.nodes)}; the cables go round as {listed}"
    wanted = "ranks in the order of the cables, from any node and in either sense"
    return Problem("order of the nodes", seen, wanted, f"order [[nodes]] as {listed}")


def _missing(cabling: Cabling, ends: Mapping[Cage, End], number: int) -> Problem:
    """Name the cages at which the cable could be: those of the two nodes without one."""
    names = cabling.nodes
    pair = (names[number], names[(number + 1) % len(names)])
    joined = {cage for one in cabling.segments for cage in one.ends}
    free = [end for cage, end in ends.items() if cage.node in pair and cage not in joined]
    told = "; ".join(map(_state, free)) or "no free cage at either"
    seen = f"no cable {number} between them: {told}"
    wanted = f"cable {number}, from rank {number} to rank {(number + 1) % len(names)}"
    fix = f"check the cable; or tetraspark ring plan --lost-cable {number}"
    return Problem(" and ".join(pair), seen, wanted, fix)


def _state(end: End) -> str:
    down = [one.netdev for one in end.functions if not one.up]
    if len(down) == len(end.functions):
        return f"{end}: link down ({', '.join(down)})"
    return f"{end}: {', '.join(down)} down" if down else f"{end}: up, and nobody heard"
