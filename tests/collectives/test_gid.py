"""GIDs: parsed, and found by address and type."""

from ipaddress import IPv6Address

import pytest

from tetraspark.collectives.gid import ROCE_V2, Gid, choose_gid, gid_of, parse_address, parse_gid

LINK_LOCAL = "fe80:0000:0000:0000:4abb:47ff:fe12:3456"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a0a:0003"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"


def table(*rows: tuple[str, str]) -> list[Gid]:
    return [Gid(i, parse_gid(text), kind, "eth0") for i, (text, kind) in enumerate(rows)]


def test_a_mapped_gid_is_an_ipv4_address() -> None:
    gid = Gid(3, parse_gid(MAPPED + "\n"), "RoCE v2", "eth0")
    assert str(gid.address) == "10.10.0.3"
    assert gid.describe() == "10.10.0.3 (RoCE v2, now at index 3)"


@pytest.mark.parametrize("text", ["", "fe80::1", MAPPED[:-1], MAPPED + ":0000", "zz" + MAPPED[2:]])
def test_what_is_no_gid_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_gid(text)


@pytest.mark.parametrize("at", [0, 1, 3, 5])
def test_the_index_does_not_matter(at: int) -> None:
    rows = [(LINK_LOCAL, "IB/RoCE v1"), (LINK_LOCAL, "RoCE v2"), (MAPPED, "IB/RoCE v1")]
    rows += [(EMPTY, "")] * 3
    rows.insert(at, (MAPPED, "RoCE v2"))
    for address in (None, parse_address("10.10.0.3")):
        found = choose_gid(table(*rows), address)
        assert (found.index, found.kind) == (at, "RoCE v2")


def test_an_ipv6_address_can_be_asked_for() -> None:
    rows = table((MAPPED, "RoCE v2"), ("2001:0db8:0000:0000:0000:0000:0000:0007", "RoCE v2"))
    assert choose_gid(rows, IPv6Address("2001:db8::7")).index == 1


@pytest.mark.parametrize(
    ("rows", "address", "seen", "wanted"),
    [
        ([], None, "every entry is empty", "a RoCE v2 GID"),
        ([(EMPTY, "RoCE v2")], None, "every entry is empty", "a RoCE v2 GID"),
        ([(LINK_LOCAL, "RoCE v2")], None, "only fe80::", "not link-local"),
        ([(MAPPED, "IB/RoCE v1")], None, "(IB/RoCE v1, now at index 0)", "a RoCE v2 GID"),
        ([(MAPPED, "")], None, "of no type", "a RoCE v2 GID"),
        ([(MAPPED, "RoCE v2")], "10.10.0.4", "only 10.10.0.3", "a RoCE v2 GID of 10.10.0.4"),
        (
            [(LINK_LOCAL, "RoCE v2"), (MAPPED, "IB/RoCE v1")],
            "10.10.0.3",
            "only 10.10.0.3 (IB/RoCE v1",
            "of 10.10.0.3",
        ),
        (
            [(MAPPED, "RoCE v2"), (MAPPED[:-1] + "4", "RoCE v2")],
            None,
            "2 usable GIDs: 10.10.0.3, 10.10.0.4",
            "to name one",
        ),
    ],
)
def test_refusals_say_what_is_there(
    rows: list[tuple[str, str]], address: str | None, seen: str, wanted: str
) -> None:
    with pytest.raises(ValueError) as caught:
        choose_gid(table(*rows), parse_address(address) if address else None)
    assert seen in caught.value.args[0]
    assert wanted in caught.value.args[1]


@pytest.mark.parametrize("text", ["192.168.177.11", "fd00::17"])
def test_the_gid_of_an_address_stands_for_it(text: str) -> None:
    address = parse_address(text)
    assert Gid(0, IPv6Address(gid_of(address)), ROCE_V2, "").address == address
