"""Wirings, cards and options: what they refuse, and that both ends agree."""

from dataclasses import asdict, replace

import pytest

from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.verbs_card import Card, DeviceCard, check_cards
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import Wiring

TWO = (Choice("a"), Choice("b"))
NODES = ("n0", "n1", "n2", "n3")


def test_a_switch_joins_like_devices() -> None:
    made = Wiring.uniform(NODES, [TWO] * 4)
    assert (made.world, made.lanes) == (4, 2)
    assert made.ends(2, 1) == ((0, 0), (1, 1))
    assert made.routes().between(0, 1) == (1, 0)
    assert made.used_together(0) == [(0, 1)] * 3


def test_the_smaller_node_sets_the_lanes() -> None:
    made = Wiring.uniform(NODES, [TWO, TWO, TWO[:1], TWO])
    assert made.lanes == 1


def test_what_is_no_wiring() -> None:
    whole = Wiring.uniform(NODES, [TWO] * 4)
    with pytest.raises(ValueError, match=r"node n1: wanted 1\.\.4 devices, each once"):
        replace(whole, devices=(TWO, (TWO[0], TWO[0]), TWO, TWO))
    with pytest.raises(ValueError, match="every pair of ranks once"):
        replace(whole, pairs=whole.pairs[1:])
    with pytest.raises(ValueError, match="node n3 has no device 2"):
        replace(whole, pairs=(*whole.pairs[:-1], ((2, 3), ((0, 2),))))
    with pytest.raises(ValueError, match=r"pair \(0, 1\): wanted 1\.\.4 lanes, each once"):
        replace(whole, pairs=(((0, 1), ((0, 0), (0, 0))), *whole.pairs[1:]))


@pytest.mark.parametrize(
    "change",
    [
        {"min_mtu": 1500},
        {"retries": 7},
        {"timeout": 0},
        {"signal_every": 17},
        {"depth": 32},
        {"beat_ms": 5},
        {"stale_s": 0.1},
        {"min_lanes": 5},
    ],
)
def test_options_that_cannot_work(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        VerbsOptions(**change)


def test_the_connection_gives_up_when_it_says() -> None:
    assert VerbsOptions().give_up_s == pytest.approx(0.4697620, rel=1e-5)


def test_lanes_that_are_enough() -> None:
    assert [VerbsOptions().needed(wired) for wired in (1, 2, 4)] == [1, 2, 4]
    assert [VerbsOptions(min_lanes=2).needed(wired) for wired in (1, 2, 4)] == [1, 2, 2]


def card(node: str) -> Card:
    device = DeviceCard("a", "00" * 16, 4096, 7)
    return Card(node, "w", asdict(VerbsOptions()), 4096, (device,), {1: ((17, 5), (18, 6))})


def test_a_card_comes_back_as_it_was() -> None:
    assert Card.from_bytes(card("n0").to_bytes()) == card("n0")
    for data in (b"{}", b"[]", b"nothing", b'{"devices": [{}], "lanes": {}}'):
        with pytest.raises(ValueError):
            Card.from_bytes(data)


def test_ranks_that_differ_are_named() -> None:
    check_cards(card("n0"), [card("n0"), card("n1")])
    with pytest.raises(ValueError, match="node n1 has another wiring than n0"):
        check_cards(card("n0"), [replace(card("n1"), wiring="v")])
    odd = replace(card("n1"), options=asdict(VerbsOptions(timeout=16)))
    with pytest.raises(ValueError, match="node n1 has timeout 16, n0 has 14"):
        check_cards(card("n0"), [odd])


def test_only_the_card_of_an_absent_device_may_be_without_an_mtu() -> None:
    absent = DeviceCard("a", "00" * 16, 0, 7, absent="its port is DOWN")
    card = Card("n", "w", {}, 1 << 12, (absent,), {1: ((0, 0),)})
    assert Card.from_bytes(card.to_bytes()).devices == (absent,)
    for mtu, why in ((0, ""), (1, "its port is DOWN")):
        with pytest.raises(ValueError, match=f"an MTU of {mtu} bytes"):
            DeviceCard("a", "00" * 16, mtu, 7, absent=why)
