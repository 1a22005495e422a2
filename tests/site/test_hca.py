"""NCCL's device lists: the grammar, and the ways it is written wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.site.hca import HcaItem, HcaList, parse, render

DEVICES = ("rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1", "mlx5_0")


def chosen(text: str) -> list[str]:
    return [device for device in DEVICES if parse(text).chooses(device)]


def test_L30_a_name_is_the_beginning_of_names() -> None:
    assert chosen("roce") == list(DEVICES[:4])


def test_L30_an_equals_sign_makes_names_whole() -> None:
    assert chosen("=rocep1s0f0") == ["rocep1s0f0"]
    assert chosen("=roce") == []


def test_L30_a_caret_leaves_devices_out() -> None:
    assert chosen("^rocep1s0f1") == ["rocep1s0f0", "roceP2p1s0f0", "roceP2p1s0f1", "mlx5_0"]
    assert chosen("^=roce") == list(DEVICES)


def test_L30_a_port_is_a_part_of_an_entry() -> None:
    found = parse("rocep1s0f0:1,roceP2p1s0f0:2")
    assert found.items == (HcaItem("rocep1s0f0", 1), HcaItem("roceP2p1s0f0", 2))
    assert found.chooses("rocep1s0f0", 1)
    assert not found.chooses("roceP2p1s0f0", 1)


def test_L30_empty_entries_count_for_nothing() -> None:
    assert parse("rocep1s0f0,,roceP2p1s0f0,") == parse("rocep1s0f0,roceP2p1s0f0")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rocep1s0f0, roceP2p1s0f0", "a space"),
        ("", "without devices"),
        ("=", "without devices"),
        ("^,", "without devices"),
        ("a:b", "no port"),
        ("a:", "no port"),
        ("a=b", "no device name"),
        ("/sys/class", "no device name"),
        (",".join(f"d{n}" for n in range(33)), "33 devices"),
    ],
)
def test_L30_what_is_no_list_of_devices_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


def test_L30_thirty_two_devices_are_a_list() -> None:
    assert len(parse(",".join(f"d{n}" for n in range(32))).items) == 32


NAMES = st.text("abcXYZ019_.-", max_size=20).map(lambda text: f"r{text}")


@settings(max_examples=50, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=32))
def test_whole_names_come_back(names: list[str]) -> None:
    assert parse(render(names)) == HcaList(tuple(map(HcaItem, names)), exact=True)


def test_nothing_is_rendered_of_no_devices() -> None:
    with pytest.raises(ValueError, match="without devices"):
        render([])
