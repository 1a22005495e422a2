"""A fabric as a picture: nodes around an ellipse, their ports, and the cables between them."""

import math
from collections.abc import Iterator
from html import escape as escape_markup

from tetraspark.fabric.cabling import Cabling, Segment
from tetraspark.fabric.cabling_wire import Cage
from tetraspark.fabric.draw import gid_index
from tetraspark.fabric.function import Function
from tetraspark.fabric.inventory_file import Inventory
from tetraspark.fleet.plain import CONTROL

WIDTH, ROW, HEAD = 330, 15, 30
PORTS = 2
"""Ports that a box has room for, each with two functions, as a Spark has."""
PORT_HEIGHT = 2 * ROW + 22
HEIGHT = HEAD + PORTS * PORT_HEIGHT + 4
RADIUS = (360.0, 230.0)
MARGIN = 60
BESIDE = 64.0
NEAR = 0.29
"""How far along a cable its port numbers stand: just outside the box of a node."""
STYLE = """
 svg { background: #ffffff; font: 11px ui-monospace, Menlo, Consolas, monospace; }
 text { fill: #1f2328; } .dim { fill: #59636e; } .bad { fill: #c21c2b; }
 .name { font-size: 14px; font-weight: 600; }
 .node, .label { fill: #f6f8fa; stroke: #8c959f; } .label { stroke: none; }
 .unseen { stroke-dasharray: 5 4; }
 .cable { stroke: #0969da; stroke-width: 3; } .guess { stroke: #9a6700; stroke-dasharray: 7 5; }
 @media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .dim { fill: #9198a1; }
  .bad { fill: #ff7b72; } .node, .label { fill: #161b22; } .node { stroke: #6e7681; }
  .cable { stroke: #4493f8; } .guess { stroke: #d29922; }
 }
"""

Place = tuple[float, float]


def escape(text: str) -> str:
    """Return a text of somebody else's as XML can hold it, which has no control characters."""
    return escape_markup(CONTROL.sub("?", text))


def is_svg(text: str) -> bool:
    """Whether a text is a picture that `svg` drew."""
    return text.startswith("<svg ") and "\n<title>fabric of " in text[:400]


def svg(inventory: Inventory) -> str:
    """Return an SVG document; it follows the reader's choice of light or dark."""
    cabling = inventory.cabling
    order = cabling.order if cabling.shape == "ring" else inventory.nodes
    hub = any(not one.cable for one in cabling.segments)
    places = _places([*order, *(node for node in inventory.nodes if node not in order)])
    width = 2 * (RADIUS[0] + WIDTH / 2 + MARGIN)
    height = 2 * (RADIUS[1] + HEIGHT / 2 + MARGIN)
    title = f"fabric of {inventory.line}: {cabling.shape}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        *_cables(cabling, places),
        *(_hub(cabling) if hub else ()),
        *(
            line
            for node, place in places.items()
            for line in _node(inventory, cabling, node, place)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _places(order: list[str]) -> dict[str, Place]:
    """Return the middle of each node's box: clockwise, the first at the upper left."""
    start = -math.pi * 3 / 4 if len(order) > 2 else -math.pi
    middle = _middle()
    scale = math.sqrt(2) if len(order) == 4 else 1.0
    return {
        node: (
            middle[0] + RADIUS[0] * scale * math.cos(start + 2 * math.pi * index / len(order)),
            middle[1] + RADIUS[1] * scale * math.sin(start + 2 * math.pi * index / len(order)),
        )
        for index, node in enumerate(order)
    }


def _middle() -> Place:
    return RADIUS[0] + WIDTH / 2 + MARGIN, RADIUS[1] + HEIGHT / 2 + MARGIN


def _cables(cabling: Cabling, places: dict[str, Place]) -> Iterator[str]:
    """Draw each segment; two cables between the same two nodes lie beside each other."""
    between: dict[frozenset[str], list[Segment]] = {}
    for one in cabling.segments:
        between.setdefault(frozenset(end.node for end in one.ends), []).append(one)
    for several in between.values():
        for index, one in enumerate(several):
            beside = BESIDE * (index - (len(several) - 1) / 2)
            yield from (
                _cable(one, cabling, places, beside)
                if one.cable
                else (_line(places[end.node], _middle(), one) for end in one.ends)
            )


def _kind(one: Segment) -> str:
    return "cable" if one.on_the_wire else "cable guess"


def _line(start: Place, end: Place, one: Segment, shift: Place = (0.0, 0.0)) -> str:
    (x1, y1), (x2, y2) = start, end
    return (
        f'<line class="{_kind(one)}" x1="{x1 + shift[0]:.1f}" y1="{y1 + shift[1]:.1f}" '
        f'x2="{x2 + shift[0]:.1f}" y2="{y2 + shift[1]:.1f}"/>'
    )


def _cable(
    one: Segment, cabling: Cabling, places: dict[str, Place], beside: float
) -> Iterator[str]:
    start, end = (places[cage.node] for cage in one.ends)
    if start == end:
        yield from _loop(start, one)
        return
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    shift = (-(y2 - y1) / length * beside, (x2 - x1) / length * beside)
    yield _line(start, end, one, shift)
    for part, texts in (
        (NEAR, [f"port {one.ends[0].number}"]),
        (0.5, _subnets(one, cabling) or ["no subnet"]),
        (1 - NEAR, [f"port {one.ends[1].number}"]),
    ):
        yield from _label(
            (x1 + (x2 - x1) * part + shift[0], y1 + (y2 - y1) * part + shift[1]), texts
        )


def _loop(place: Place, one: Segment) -> Iterator[str]:
    """Draw a cable between two ports of one node, below its box."""
    x, y = place[0], place[1] + HEIGHT / 2
    bend = f"M {x - 70:.1f} {y:.1f} q 70 80 140 0"
    yield f'<path class="{_kind(one)}" fill="none" d="{bend}"/>'
    yield from _label((x, y + 46), [f"port {one.ends[0].number} - port {one.ends[1].number}"])


def _subnets(one: Segment, cabling: Cabling) -> list[str]:
    nets = [
        {
            address.network
            for function in cabling.cages.get(end, ())
            for address in function.addresses
        }
        for end in one.ends
    ]
    return [str(net) for net in sorted(set.intersection(*nets))]


def _label(place: Place, texts: list[str]) -> Iterator[str]:
    x, y = place
    height = ROW * len(texts) + 6
    width = 7 * max(map(len, texts)) + 10
    yield (
        f'<rect class="label" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
        f'width="{width}" height="{height}" rx="4"/>'
    )
    for index, text in enumerate(texts):
        top = y - height / 2 + ROW * (index + 1) - 1
        yield _text(x, top, text, "dim", ' text-anchor="middle"')


def _hub(cabling: Cabling) -> Iterator[str]:
    x, y = _middle()
    names = {one.switch or "switch" for one in cabling.segments if not one.cable}
    yield f'<rect class="node" x="{x - 90:g}" y="{y - 20:g}" width="180" height="40" rx="6"/>'
    yield _text(x, y + 5, ", ".join(sorted(names)), "name", ' text-anchor="middle"')


def _node(inventory: Inventory, cabling: Cabling, node: str, place: Place) -> Iterator[str]:
    x, y = place[0] - WIDTH / 2, place[1] - HEIGHT / 2
    seen = node in inventory.fabrics
    kind = "node" if seen else "node unseen"
    yield f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    yield _text(x + 12, y + 20, node, "name")
    yield _text(x + WIDTH - 70, y + 20, f"rank {inventory.nodes.index(node)}", "dim")
    if not seen:
        yield _text(x + 12, y + 42, "unknown: not looked at", "bad")
        return
    own = [(cage, twins) for cage, twins in cabling.cages.items() if cage.node == node]
    if len(own) > PORTS:
        yield _text(x + 120, y + 20, f"{len(own) - PORTS} more ports", "dim")
    for index, (cage, twins) in enumerate(own[:PORTS]):
        yield from _port(x + 12, y + HEAD + index * PORT_HEIGHT, cage, twins, cabling)


def _port(
    x: float, y: float, cage: Cage, twins: tuple[Function, ...], cabling: Cabling
) -> Iterator[str]:
    silent = " - the other end is unknown" if cage in cabling.silent else ""
    mtus = "/".join(map(str, sorted({one.mtu for one in twins})))
    yield _text(x, y + ROW, f"port {cage.number}   MTU {mtus}{silent}", "dim")
    for index, one in enumerate(twins[:2]):
        state = "up" if one.up else "down"
        addresses = " ".join(map(str, one.addresses)) or "no address"
        text = f"{one.netdev:<14} {state:<4} {addresses:<16} GID {gid_index(one)}"
        yield _text(x + 8, y + ROW * (index + 2), text, "" if one.up else "bad")


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name}{more} xml:space="preserve" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
