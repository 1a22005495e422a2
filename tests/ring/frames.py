"""RoCE v2 frames as far as a ring cares: Ethernet, IPv4, UDP to port 4791, and a payload."""

import socket
import struct
from ipaddress import IPv4Address

ROCE_PORT = 4791
SOURCE_PORT = 0xC123


def card(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def checksum(data: bytes) -> int:
    """Return the ones' complement checksum of RFC 1071."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(
    to: str, came: str, ethertype: int, source: IPv4Address, target: IPv4Address, payload: bytes
) -> bytes:
    """Return a whole frame; the UDP checksum is zero, as RoCE v2 has it."""
    udp = struct.pack("!HHHH", SOURCE_PORT, ROCE_PORT, 8 + len(payload), 0) + payload
    size = 20 + len(udp)
    fields = (0x45, 0, size, 0, 0x4000, 64, socket.IPPROTO_UDP, 0, source.packed, target.packed)
    ip = struct.pack("!BBHHHBBH4s4s", *fields)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return card(to) + card(came) + struct.pack("!H", ethertype) + ip + udp
