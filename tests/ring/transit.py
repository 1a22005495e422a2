"""Stands for the NICs of a node: relays tagged frames as the rules in a file say, and counts.

Run in a node's namespace: `python transit.py RULES`. Like a NIC it does what is in hardware, and
nothing else: a rule with `in_hw` false does nothing, and a frame that no rule matches is gone.
RULES is a JSON list of objects with `netdev`, `preference`, `handle`, `tag`, `source_mac`,
`destination_mac`, `new_tag`, `new_mac`, `redirect` and `in_hw`; it is read again when it changes.
Packets by rule, as `netdev preference handle`, are in RULES.hits.
"""

import errno
import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import Any

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
ETHERNET = 14
LARGEST = 1 << 16

Key = tuple[str, bytes, bytes, bytes]
"""Device, destination card, origin's card, EtherType."""


def card(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ethertype(value: int) -> bytes:
    return value.to_bytes(2, "big")


class Transit:
    """Relays between the devices of one namespace."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.state: os.stat_result | None = None
        self.rules: dict[Key, dict[str, Any]] = {}
        self.hits: dict[str, int] = {}
        self.sockets: dict[str, socket.socket] = {}
        for _, name in socket.if_nameindex():
            if name != "lo":
                self.sockets[name] = self.open(name)

    def open(self, netdev: str) -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        made.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        made.bind((netdev, ETH_P_ALL))
        return made

    def run(self) -> None:
        by_socket = {made.fileno(): name for name, made in self.sockets.items()}
        waiting = select.poll()
        for number in by_socket:
            waiting.register(number, select.POLLIN)
        self.count()
        print("ready", flush=True)
        while True:
            for number, _ in waiting.poll():
                self.relay(by_socket[number])

    def relay(self, netdev: str) -> None:
        try:
            frame = self.sockets[netdev].recv(LARGEST)
        except OSError as error:
            if error.errno != errno.ENETDOWN:
                raise
            return
        self.read()
        rule = self.rules.get((netdev, frame[0:6], frame[6:12], frame[12:14]))
        if rule is None or not rule["in_hw"]:
            return
        header = card(rule["new_mac"]) + frame[6:12] + ethertype(rule["new_tag"])
        name = f"{netdev} {rule['preference']} {rule['handle']}"
        self.hits[name] = self.hits.get(name, 0) + 1
        self.count()
        self.sockets[rule["redirect"]].send(header + frame[ETHERNET:])

    def read(self) -> None:
        """Take the rules again if somebody wrote them."""
        state = self.file.stat()
        if self.state is not None and _version(state) == _version(self.state):
            return
        rules = json.loads(self.file.read_text())
        self.state = state
        self.rules = {
            (
                one["netdev"],
                card(one["destination_mac"]),
                card(one["source_mac"]),
                ethertype(one["tag"]),
            ): one
            for one in rules
        }

    def count(self) -> None:
        """Write the hits, whole at every moment."""
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.hits))
        new.rename(self.file.with_suffix(".hits"))


def _version(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_mtime_ns, state.st_ino, state.st_size


if __name__ == "__main__":
    Transit(Path(sys.argv[1])).run()
