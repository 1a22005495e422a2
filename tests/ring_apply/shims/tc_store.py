"""Filters of a node as JSON in /run/tc.json, taken and shown in tc's own words.

What the card has of them goes to the file of rules in $NODE_FOLDER that the node's transit works
by, and the transit's hits are the card's counters. What is in /run/tc.fault bends it: `not_in_hw`
for a card that takes no rule, `refuse` for one that gives an error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STORE = Path("/run/tc.json")
CARD = Path(os.environ["NODE_FOLDER"]) / "rules"
FAULT = Path("/run/tc.fault")
KNOWN = {0x0800: "ip", 0x0806: "arp"}


def load() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(STORE.read_text()) if STORE.exists() else []
    return found


def save(filters: list[dict[str, Any]]) -> None:
    part = STORE.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(filters))
    part.replace(STORE)
    for dev in {one["dev"] for one in filters} | {path.suffix[1:] for path in shown_files()}:
        Path(f"/run/tc.show.{dev}").write_text(json.dumps(listed(filters, dev, {})))
    part = CARD.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps([on_card(one) for one in filters if relays(one)]))
    part.replace(CARD)


def relays(one: dict[str, Any]) -> bool:
    kinds = [act["kind"] for act in one["options"]["actions"]]
    return kinds == ["pedit", "pedit", "mirred"] and len(one["options"]["keys"]) == 2


def on_card(one: dict[str, Any]) -> dict[str, Any]:
    kind, card, send = one["options"]["actions"]
    high, low = (int(key["val"], 16) for key in card["keys"])
    mac = f"{high << 16 | low >> 16:012x}"
    return {
        "netdev": one["dev"],
        "preference": one["pref"],
        "handle": one["handle"],
        "tag": one["protocol"],
        "source_mac": one["options"]["keys"]["src_mac"],
        "destination_mac": one["options"]["keys"]["dst_mac"],
        "new_tag": int(kind["keys"][0]["val"], 16) >> 16,
        "new_mac": ":".join(mac[at : at + 2] for at in range(0, 12, 2)),
        "redirect": send["to_dev"],
        "in_hw": one["options"].get("in_hw", False),
    }


def fail(text: str) -> None:
    sys.stderr.write(f"{text}\nWe have an error talking to the kernel\n")
    sys.exit(2)


def after(words: list[str], name: str, default: str = "") -> str:
    return words[words.index(name) + 1] if name in words else default


def pedit(order: int, keys: list[tuple[int, int, int]]) -> dict[str, Any]:
    shown = [
        {"htype": "eth", "offset": at, "cmd": "set", "val": f"{value:x}", "mask": f"{mask:x}"}
        for at, value, mask in keys
    ]
    return {
        "order": order,
        "kind": "pedit",
        "control_action": {"type": "pipe"},
        "nkeys": len(shown),
        "index": order,
        "ref": 1,
        "bind": 1,
        "keys": shown,
    }


def actions(words: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for at, word in enumerate(words):
        if word == "munge" and words[at + 2] == "type":
            found.append(pedit(len(found) + 1, [(12, int(words[at + 4], 0) << 16, 0xFFFF)]))
        elif word == "munge" and words[at + 2] == "dst":
            mac = int(words[at + 4].replace(":", ""), 16)
            keys = [(0, mac >> 16, 0), (4, (mac & 0xFFFF) << 16, 0xFFFF)]
            found.append(pedit(len(found) + 1, keys))
        elif word == "redirect":
            found.append(
                {
                    "order": len(found) + 1,
                    "kind": "mirred",
                    "mirred_action": "redirect",
                    "direction": "egress",
                    "to_dev": words[at + 2],
                    "control_action": {"type": "stolen"},
                }
            )
        elif word == "drop":
            drop = {"order": len(found) + 1, "kind": "gact", "control_action": {"type": "drop"}}
            found.append(drop)
    return found


def place(words: list[str]) -> tuple[str, int, int, int]:
    numbers = (int(after(words, name, "0"), 0) for name in ("protocol", "pref", "handle"))
    protocol, pref, handle = numbers
    return after(words, "dev"), protocol, pref, handle


def same(one: dict[str, Any], key: tuple[str, int, int, int]) -> bool:
    return (one["dev"], one["protocol"], one["pref"], one["handle"]) == key


def add(words: list[str]) -> None:
    key = dev, protocol, pref, handle = place(words)
    fault = FAULT.read_text() if FAULT.exists() else ""
    filters = load()
    qdiscs = os.popen(f"/usr/sbin/tc -j qdisc show dev {dev}").read()  # noqa: S605 our own words
    if '"clsact"' not in qdiscs:
        fail("Error: Parent Qdisc doesn't exists.")
    if any(same(one, key) for one in filters):
        fail("RTNETLINK answers: File exists")
    if any(
        (one["dev"], one["pref"]) == (dev, pref) and one["protocol"] != protocol for one in filters
    ):
        fail("Error: Specified filter protocol does not match existing protocol.")
    offload = Path(f"/run/offload.{dev}")
    if "skip_sw" in words and (
        fault == "refuse" or "off" in (offload.read_text() if offload.exists() else "")
    ):
        fail("RTNETLINK answers: Operation not supported")
    taken = "skip_sw" in words and fault != "not_in_hw"
    keys = {name: after(words, name) for name in ("dst_mac", "src_mac") if name in words}
    options: dict[str, Any] = {"handle": handle, "keys": keys}
    options |= {"skip_sw": True} if "skip_sw" in words else {}
    options |= {"in_hw": True, "in_hw_count": 1} if taken else {"not_in_hw": True}
    entry = {"dev": dev, "protocol": protocol, "pref": pref, "handle": handle}
    save([*filters, entry | {"options": options | {"actions": actions(words)}}])


def delete(words: list[str]) -> None:
    key, filters = place(words), load()
    kept = [one for one in filters if not same(one, key)]
    if len(kept) == len(filters):
        fail("RTNETLINK answers: No such file or directory")
    save(kept)


def shown_files() -> list[Path]:
    return list(Path("/run").glob("tc.show.*"))


def listed(filters: list[dict[str, Any]], dev: str, hits: dict[str, int]) -> list[dict[str, Any]]:
    """Return the filters of a device as `tc -j -s` lists them."""
    shown: list[dict[str, Any]] = []
    for one in filters:
        if one["dev"] != dev:
            continue
        name = KNOWN.get(one["protocol"], f"[{one['protocol']}]")
        head = {"protocol": name, "pref": one["pref"], "kind": "flower", "chain": 0}
        packets = hits.get(f"{one['dev']} {one['pref']} {one['handle']}", 0)
        stats = {"bytes": packets * 4096, "packets": packets, "hw_bytes": 0, "hw_packets": packets}
        acts = [act | {"stats": stats} for act in one["options"]["actions"]]
        shown += [head, head | {"options": one["options"] | {"actions": acts}}]
    return shown


def show(words: list[str]) -> None:
    file = CARD.with_suffix(".hits")
    hits = json.loads(file.read_text()) if file.exists() else {}
    print(json.dumps(listed(load(), after(words, "dev"), hits)))


def main(words: list[str]) -> None:
    if "qdisc" in words:
        dev = after(words, "dev")
        save([one for one in load() if one["dev"] != dev])
        os.execv("/usr/sbin/tc", ["tc", *words])
    if "show" in words:
        show(words)
    else:
        (add if "add" in words else delete)(words)


main(sys.argv[1:])
