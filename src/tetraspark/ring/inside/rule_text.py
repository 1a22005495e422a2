"""Filters as `tc -j` shows them, read by content: runs inside the node."""

from __future__ import annotations

from typing import Any


def number(found: dict[str, Any]) -> tuple[int, int]:
    """Return the preference and the handle of a filter."""
    handle = found["options"].get("handle", 0)
    return found.get("pref", 0), int(handle, 0) if isinstance(handle, str) else int(handle)


def ethertype(text: str) -> int:
    """Return an EtherType as tc words it: `[34997]` for one without a name."""
    names = {"ip": 0x0800, "arp": 0x0806, "ipv6": 0x86DD, "all": 0x0003, "802.1Q": 0x8100}
    digits = text.strip("[]")
    return names[text] if text in names else int(digits) if digits.isdecimal() else 0


def content_of(found: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a filter matches and does; what it does beyond a relay makes it unequal."""
    options = found["options"]
    keys = dict(options.get("keys", {}))
    match = (ethertype(found["protocol"]), keys.pop("src_mac", ""), keys.pop("dst_mac", ""))
    keys.pop("eth_type", None)
    new_tag, new_mac, out, other = None, None, None, sorted(keys)
    words: dict[int, tuple[int, int]] = {}
    for act in options.get("actions", []):
        if act["kind"] == "pedit":
            words.update(_munged(act))
        elif act["kind"] == "mirred" and act.get("mirred_action") == "redirect":
            out = act.get("to_dev")
        else:
            other.append(act["kind"])
    if set(words) == {0, 4, 12}:
        high, low = words[0][0], words[4][0] >> 16
        new_mac = ":".join(
            f"{(high << 16 | low) >> shift & 255:02x}" for shift in range(40, -8, -8)
        )
        new_tag = words[12][0] >> 16
        if [words[at][1] for at in (0, 4, 12)] != [0, 0xFFFF, 0xFFFF]:
            other.append("pedit masks")
    base = match, options.get("skip_sw") is True, new_tag, new_mac, out
    return (*base, *other) if other else base


def _munged(act: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """Return the 32-bit words that a pedit sets in the Ethernet header: value and mask by offset.

    Offset -1 stands for an edit of something else.
    """
    found = {}
    for key in act.get("keys", []):
        right = key.get("htype") == "eth" and key.get("cmd") == "set"
        found[int(key["offset"]) if right else -1] = (int(key["val"], 16), int(key["mask"], 16))
    return found


def words_of(found: dict[str, Any]) -> str:
    """Return a filter as messages show it."""
    return f"pref {found.get('pref')} {told(content_of(found))}"


def told(content: tuple[Any, ...]) -> str:
    """Return the content of a filter in words."""
    (tag, source, target), skip, new_tag, new_mac, out, *other = content
    new = "?" if new_tag is None else f"0x{new_tag:04x}"
    extra = f" and {', '.join(other)}" if other else ""
    soft = "" if skip else ", in software too"
    return f"0x{tag:04x} {source} > {target} to {new} {new_mac} by {out}{soft}{extra}"
