"""The text and the picture of a fabric, and the file that both can be made from."""

import json
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.fabric import example
from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks, alternating, line, pair, relay_rule, ring, switched
from tetraspark.errors import UsageError
from tetraspark.fabric.cabling_checks import Topology
from tetraspark.fabric.draw import joined, rows
from tetraspark.fabric.draw_svg import svg
from tetraspark.fabric.inventory_file import SCHEMA, Inventory, load_inventory

SVG = "{http://www.w3.org/2000/svg}"


def inventory(
    sparks: Sparks, topology: Topology = "ring", nodes: tuple[str, ...] = NAMES, absent: str = ""
) -> Inventory:
    devices = dict.fromkeys(nodes, example.DEVICES)
    fabrics = {name: sparks.fabric(name) for name in nodes if name != absent}
    unseen: Mapping[str, str] = {absent: "cannot be reached"} if absent else {}
    return Inventory("mine", topology, nodes, devices, fabrics, unseen)


def drawn(found: Inventory) -> ElementTree.Element:
    return ElementTree.fromstring(svg(found))


def texts(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_a_ring_is_one_line_of_text() -> None:
    assert joined(inventory(ring()).cabling) == [
        "spark1 [0]──[1] spark2 [0]──[1] spark3 [0]──[1] spark4 [0]──[1] spark1"
    ]
    assert joined(inventory(alternating()).cabling) == [
        "spark1 [0]──[0] spark2 [1]──[1] spark3 [0]──[0] spark4 [1]──[1] spark1"
    ]
    assert joined(inventory(line()).cabling) == [
        "spark1 [0]──[1] spark2 [0]──[1] spark3 [0]──[1] spark4"
    ]


def test_a_switch_a_pair_and_a_tangle_are_a_line_for_each_segment() -> None:
    assert joined(inventory(switched()).cabling) == [
        "switch ── spark1 [0], spark2 [0], spark3 [0], spark4 [0]"
    ]
    two = joined(inventory(pair(), "pair", NAMES[:2]).cabling)
    assert two == ["spark1 [0]──[0] spark2", "spark1 [1]──[1] spark2"]
    sparks = ring()
    sparks.swap(("spark2", 1), ("spark3", 1))
    assert "spark2 [0]──[1] spark2" in joined(inventory(sparks).cabling)


def test_a_node_that_is_down_is_drawn_as_unknown() -> None:
    found = inventory(ring(), absent="spark3")
    assert joined(found.cabling) == [
        "spark2 [1]──[0] spark1 [1]──[0] spark4",
        "spark2 [0]── spark3 (not looked at)",
        "spark4 [1]── spark3 (not looked at)",
    ]
    deaf = ring()
    deaf.lldp.clear()
    assert joined(inventory(deaf, absent="spark3").cabling)[1:] == [
        "spark2 [0]── ?",
        "spark4 [1]── ?",
    ]
    (row,) = (one for one in rows(found) if one.node == "spark3")
    assert (row.netdev, row.link, row.note) == ("?", "?", "cannot be reached")
    root = drawn(found)
    assert "unknown: not looked at" in texts(root)
    assert [one.get("class") for one in root.iter(f"{SVG}rect")].count("node unseen") == 1


def test_L41_twins_are_beside_each_other_and_a_dead_half_is_named() -> None:
    sparks = ring()
    sparks.port("spark1", 0, 0).up = False
    first, second, *_ = rows(inventory(sparks))
    assert (first.netdev, first.link, first.note) == ("enp1s0f0np0", "down", "its twin is up")
    assert (second.netdev, second.link, second.note) == (
        *("enP2p1s0f0np0", "up 200G", "its twin is down"),
    )
    assert first.port == second.port == "0" and first.far == second.far == "spark2 port 1"


def test_L40_a_narrow_bus_and_R17_relays_are_noted() -> None:
    sparks = ring()
    sparks.port("spark1", 0, 0).width = "2"
    sparks.port("spark1", 0, 1).rules = [relay_rule(1, "enP2p1s0f1np1")]
    first, second, *_ = rows(inventory(sparks))
    assert first.note == "PCIe x2 of x4" and second.note == "1 relay rule"


def test_L27_L32_the_rows_show_index_and_mtu_as_they_are() -> None:
    sparks = ring()
    sparks.port("spark1", 0, 1).gid_index = 5
    sparks.port("spark1", 0, 0).mtu = 1500
    sparks.port("spark1", 1, 0).address = None
    sparks.devinfo.discard("spark1")
    found = [(one.gid, one.mtu) for one in rows(inventory(sparks))[:3]]
    assert found == [("3", "1500/1024 derived"), ("5", "9000/4096 derived"), ("-",
                     "9000/4096 derived")]  # fmt: skip


def test_what_only_addresses_say_is_marked() -> None:
    sparks = ring()
    sparks.lldp.clear()
    sparks.neighbours.clear()
    found = inventory(sparks)
    assert rows(found)[0].far == "spark2 port 1 (by address)"
    classes = [one.get("class") for one in drawn(found).iter(f"{SVG}line")]
    assert classes == ["cable guess"] * 4


@pytest.mark.parametrize(
    ("found", "lines", "paths"),
    [
        (inventory(ring()), 4, 0),
        (inventory(switched(), "switch"), 4, 0),
        (inventory(pair(), "pair", NAMES[:2]), 2, 0),
        (inventory(line()), 3, 0),
    ],
)
def test_a_picture_is_well_formed_and_has_every_cable(
    found: Inventory, lines: int, paths: int
) -> None:
    root = drawn(found)
    assert len(list(root.iter(f"{SVG}line"))) == lines
    assert len(list(root.iter(f"{SVG}path"))) == paths
    assert set(found.nodes) <= set(texts(root))
    style = next(root.iter(f"{SVG}style")).text or ""
    assert "prefers-color-scheme: dark" in style
    left, top, width, height = map(float, (root.get("viewBox") or "").split())
    for box in root.iter(f"{SVG}rect"):
        x, y = float(box.get("x", "")), float(box.get("y", ""))
        assert left <= x and x + float(box.get("width", "")) <= width
        assert top <= y and y + float(box.get("height", "")) <= height


def test_a_cable_from_a_node_to_itself_is_a_loop() -> None:
    sparks = ring()
    sparks.swap(("spark2", 1), ("spark3", 1))
    root = drawn(inventory(sparks))
    assert len(list(root.iter(f"{SVG}path"))) == 1
    assert "no subnet" in texts(root)


def test_names_of_others_cannot_break_the_picture() -> None:
    found = inventory(ring())
    odd = Inventory("<&\"'>\x1b", "ring", found.nodes, found.devices, found.fabrics, {})
    assert next(drawn(odd).iter(f"{SVG}title")).text == "fabric of <&\"'>?: ring"


def test_a_saved_inventory_is_read_as_it_was(tmp_path: Path) -> None:
    sparks = ring()
    sparks.port("spark2", 0).rules = [relay_rule(49152, "enp1s0f1np1", packets=7)]
    found = inventory(sparks, absent="spark3")
    path = tmp_path / "fabric.json"
    path.write_text(json.dumps(found.as_dict()))
    assert load_inventory(path) == found


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (None, "no such file"),
        ("{", "not JSON"),
        ("[]", "schema None"),
        ('{"schema": "tetraspark.fabric/0"}', "schema 'tetraspark.fabric/0'"),
        (f'{{"schema": "{SCHEMA}", "line": 3}}', "valid string"),
        ("\xff", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_inventory_is_refused(
    tmp_path: Path, text: str | None, seen: str
) -> None:
    path = tmp_path / "fabric.json"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        load_inventory(path)
    assert any(seen in one.seen for one in caught.value.problems)
    assert all("fabric show" in one.fix for one in caught.value.problems)


def test_the_example_is_what_the_model_makes() -> None:
    assert example.FILE.read_text() == example.text(), "python -m tests.fabric.example"
    assert load_inventory(example.FILE) == example.inventory()
