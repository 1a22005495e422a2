"""What `tc -s filter show` says of rules: as JSON, and as the text that older versions print."""

import re
from itertools import pairwise
from typing import Any

from tetraspark.fabric.inventory_json import mac, table, tables, whole, word
from tetraspark.fabric.tc_rule import TcRule

FILTER = re.compile(r"^filter (?:parent \S+ )?(?:ingress )?(?P<words>protocol .*)$", re.M)
REDIRECT = re.compile(r"mirred \(Egress Redirect to device (\S+?)\)")
SENT = re.compile(r"Sent (hardware )?([0-9]+) bytes ([0-9]+) pkts?")


def rules(netdev: str, value: Any) -> tuple[TcRule, ...]:
    """Return the rules of `tc -j -s filter show dev NETDEV ingress`.

    tc prints a line for a classifier without rules too; only what has options is a rule.
    """
    return tuple(
        _rule(netdev, one, table(one.get("options")))
        for one in tables(value)
        if isinstance(one.get("options"), dict) and one["options"]
    )


def _rule(netdev: str, one: dict[str, Any], options: dict[str, Any]) -> TcRule:
    actions = list(tables(options.get("actions")))
    redirect = (
        word(action.get("to_dev"))
        for action in actions
        if action.get("kind") == "mirred" and action.get("mirred_action") == "redirect"
    )
    keys = table(options.get("keys"))
    counted = table(actions[-1].get("stats")) if actions else {}
    return TcRule(
        netdev=netdev,
        preference=whole(one.get("pref")),
        handle=_handle(options.get("handle")),
        protocol=_protocol(word(one.get("protocol"))),
        kind=word(one.get("kind")),
        offloaded=_offloaded(options),
        skip_software=options.get("skip_sw") is True,
        source_mac=mac(keys.get("src_mac")) or None,
        destination_mac=mac(keys.get("dst_mac")) or None,
        redirect=next(redirect, "") or None,
        packets=whole(counted.get("packets")),
        hardware_packets=whole(counted.get("hw_packets")),
        hardware_bytes=whole(counted.get("hw_bytes")),
    )


def _offloaded(options: dict[str, Any]) -> bool | None:
    if options.get("not_in_hw") is True:
        return False
    return True if options.get("in_hw") is True else None


def _protocol(text: str) -> str:
    """Return an EtherType that tc has no name for as people write it: `[34997]` is 0x88b5."""
    number = whole(text[1:-1]) if text.startswith("[") and text.endswith("]") else None
    return text if number is None else f"0x{number:04x}"


def _handle(value: Any) -> int | None:
    text = word(value).removeprefix("0x")
    if not text:
        return whole(value)
    return int(text, 16) if re.fullmatch("[0-9a-f]{1,8}", text) else None


def text_rules(netdev: str, text: str) -> tuple[TcRule, ...]:
    """Return the rules of `tc -s filter show` without `-j`. Words count, not parts of them."""
    starts = list(FILTER.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    blocks = [
        (match["words"].split(), text[match.end() : end])
        for match, end in zip(starts, ends, strict=False)
    ]
    return tuple(_text_rule(netdev, head, body) for head, body in blocks if "handle" in head)


def _text_rule(netdev: str, head: list[str], body: str) -> TcRule:
    words = body.split()
    named = dict(pairwise(head)) | dict(pairwise(words))
    redirect = REDIRECT.search(body)
    sent = {bool(hardware): (int(size), int(packets))
            for hardware, size, packets in SENT.findall(body)}  # fmt: skip
    size, packets = sent.get(True, (None, None))
    return TcRule(
        netdev=netdev,
        preference=whole(named.get("pref")),
        handle=_handle(named.get("handle")),
        protocol=_protocol(named.get("protocol", "")),
        kind=next((kind for kind in head if kind in ("flower", "matchall", "u32")), ""),
        offloaded=False if "not_in_hw" in words else True if "in_hw" in words else None,
        skip_software="skip_sw" in words,
        source_mac=mac(named.get("src_mac")) or None,
        destination_mac=mac(named.get("dst_mac")) or None,
        redirect=redirect[1] if redirect else None,
        packets=sent.get(False, (None, None))[1],
        hardware_packets=packets,
        hardware_bytes=size,
    )
