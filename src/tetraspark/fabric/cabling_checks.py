"""Checks of how a fleet is cabled: the shape, whose word it is, the order and the orientation."""

from collections.abc import Sequence
from typing import Literal

from tetraspark.doctor.check import Check
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_moves import Move, Pair, fewest, uniform_rings

Topology = Literal["switch", "pair", "ring"]
SHAPES = {"switch": "switched", "pair": "pair", "ring": "ring"}
SHOW = "tetraspark fabric show"
LISTEN = "sudo apt-get install lldpd on every node, or ping -c 3 the address at the other end"


def cabling_checks(cabling: Cabling, topology: Topology) -> list[Check]:
    """Return the checks of the cabling: by the wire where it shows, and else unknown."""
    checks = [_nodes(cabling), _wire(cabling), _contradicted(cabling), _shape(cabling, topology)]
    if topology == "ring":
        checks += [_order(cabling), _orientation(cabling)]
    return checks


def _nodes(cabling: Cabling) -> Check:
    wanted = "every node of the site"
    if not cabling.absent:
        return Check("CABLING.NODES", None, "ok", f"{len(cabling.nodes)} nodes", wanted)
    seen = f"not looked at: {', '.join(cabling.absent)}"
    fix = f"{SHOW}: the note of the node says why"
    return Check("CABLING.NODES", None, "unknown", seen, wanted, fix)


def _wire(cabling: Cabling) -> Check:
    """Whether the wire itself shows the other end of every link."""
    wanted = "the other end of every link seen on the wire"
    guessed = [one for one in cabling.segments if not one.on_the_wire]
    if not guessed and not cabling.silent and cabling.segments:
        words = sorted({word for one in cabling.segments for word in one.how})
        return Check("CABLING.WIRE", None, "ok", f"seen by {' and '.join(words)}", wanted)
    parts = [f"only addresses say {one}" for one in guessed]
    parts += [f"nothing is heard on {cage}" for cage in cabling.silent]
    parts += [f"nothing of {', '.join(cabling.absent)}: not looked at"] if cabling.absent else []
    seen = "; ".join(parts) or "no link is up"
    if len(cabling.absent) == len(cabling.nodes):
        return Check("CABLING.WIRE", None, "unknown", "no node was looked at", wanted, SHOW)
    return Check("CABLING.WIRE", None, "unknown", seen, wanted, LISTEN)


def _contradicted(cabling: Cabling) -> Check:
    wanted = "both ends of a cable hear each other"
    if not cabling.contradicted:
        return Check("CABLING.RECIPROCAL", None, "ok", "no end denies the other", wanted)
    seen = "; ".join(f"{a} hears {b}, which hears another" for a, b in cabling.contradicted)
    fix = "the cable was moved lately: ping over it from both ends, then look again"
    return Check("CABLING.RECIPROCAL", None, "unknown", seen, wanted, fix)


def _shape(cabling: Cabling, topology: Topology) -> Check:
    shape, wanted = cabling.shape, f'topology = "{topology}"'
    named = "; ".join(map(str, cabling.segments)) or "no cable"
    seen = f"{shape}: {named}"
    if shape == SHAPES[topology] and cabling.complete:
        return Check("CABLING.SHAPE", None, "ok", seen, wanted)
    if not cabling.complete:
        return Check("CABLING.SHAPE", None, "unknown", f"{seen}, as far as was seen", wanted, SHOW)
    return Check("CABLING.SHAPE", None, "failed", seen, wanted, _recabling(cabling, topology))


def _recabling(cabling: Cabling, topology: Topology) -> str:
    own = next((word for word, shape in SHAPES.items() if shape == cabling.shape), None)
    if topology == "ring" and cabling.shape in ("line", "mixed"):
        return described(to_uniform(cabling))
    return f'write topology = "{own}", or change the cables' if own else SHOW


def _order(cabling: Cabling) -> Check:
    """Rank r must be next to rank r + 1: NCCL's ring and the paths to opposite nodes count so."""
    wanted = "ranks that follow the cables, either way round"
    fits = cabling.in_rank_order
    ranks = f"ranks are {', '.join(cabling.nodes)}"
    if fits is None or not cabling.complete:
        return Check("CABLING.ORDER", None, "unknown", f"{ranks}; no whole ring", wanted, SHOW)
    if fits:
        return Check("CABLING.ORDER", None, "ok", ranks, wanted)
    around = ", ".join(cabling.order)
    seen = f"{ranks}; around the ring it is {around}"
    fix = f"write the [[nodes]] of the site in the order {around}"
    return Check("CABLING.ORDER", None, "failed", seen, wanted, fix)


def _orientation(cabling: Cabling) -> Check:
    """A mixed one works, with restrictions: NCCL without NIC fusion takes the wrong function."""
    wanted = "port 0 of each node joined to port 1 of the next"
    way = cabling.orientation
    if way is None or not cabling.complete:
        seen = "no whole ring was seen"
        return Check("CABLING.ORIENTATION", None, "unknown", seen, wanted, SHOW)
    if way == "uniform":
        seen = f"{' - '.join(cabling.order)}, each by its port {_out(cabling)}"
        return Check("CABLING.ORIENTATION", None, "ok", seen, wanted)
    alike = [one for one in cabling.segments if one.ends[0].number == one.ends[1].number]
    seen = f"{way}: ports of one number joined: {'; '.join(map(str, alike))}"
    fix = (
        f"keep it with NCCL_IB_MERGE_NICS=1, or {described(to_uniform(cabling))}, "
        "and with the cables their addresses"
    )
    return Check("CABLING.ORIENTATION", None, "warning", seen, wanted, fix)


def _out(cabling: Cabling) -> int:
    ends = cabling.cable(cabling.order[0], cabling.order[1])
    return ends[0].number if ends else 0


def to_uniform(cabling: Cabling) -> tuple[Move, ...]:
    """Return the fewest moves to a uniform ring, in the order of the ring or else of the ranks."""
    order = cabling.order if cabling.shape == "ring" else cabling.nodes
    return fewest(pairs(cabling), uniform_rings(order))


def pairs(cabling: Cabling) -> Sequence[Pair]:
    """Return the two ends of each cable."""
    return [(one.ends[0], one.ends[1]) for one in cabling.segments if one.cable]


def described(found: Sequence[Move]) -> str:
    """Name moves for a person."""
    return "; ".join(map(str, found)) or "leave the cables as they are"
