"""Tags: the EtherType that tells a NIC how many relays a frame still has before it.

A frame leaves its origin tagged with the number of relays on its way; each relay's NIC counts one
down and the last one restores IPv4. Nothing that the frame's own checksum covers is touched: the
invariant CRC of RoCE v2 covers IP, UDP and the transport headers, and not the Ethernet header.
"""

IPV4 = 0x0800
BASE = 0x88B4
"""0x88B5 and 0x88B6 are reserved for local experiments (IEEE 802); more relays go past them."""

MAX_RELAYS = 6
"""A line of eight nodes; the cables are point to point, so nobody else sees the tags."""


def tag(relays: int) -> int:
    """Return the EtherType of a frame with that many relays left. Raises ValueError."""
    if not 0 <= relays <= MAX_RELAYS:
        raise ValueError(f"{relays} relays: wanted 0..{MAX_RELAYS}")
    return BASE + relays if relays else IPV4


def relays_left(ethertype: int) -> int | None:
    """Return how many relays a frame has before it; None for an EtherType that is none of ours."""
    if ethertype == IPV4:
        return 0
    return ethertype - BASE if BASE < ethertype <= BASE + MAX_RELAYS else None
