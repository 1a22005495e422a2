"""Counters over a window: how much each grew, whatever became of them in between."""

from collections.abc import Mapping

WORD = 4
"""Bytes that `port_xmit_data` and `port_rcv_data` count in: their unit is InfiniBand's, 32 bits."""
BYTES = {"sent": "port_xmit_data", "received": "port_rcv_data"}
PACKETS = {
    "sent": ("port_xmit_packets", "sent_pkts"),
    "received": ("port_rcv_packets", "rcvd_pkts"),
}
"""Names of packet counters, a NIC's and soft-RoCE's; the latter counts no bytes."""


def grown(before: int, after: int) -> tuple[int | None, bool]:
    """Return how much a counter grew, and whether it began anew in between.

    A 32-bit or 64-bit counter that passed its end goes on from 0; so does one whose driver was
    loaded again, and then what it shows is the least it can have grown. The two are told apart by
    where it was: a jump back from the last half of its range, by more than half. One that stands
    at its end has stopped counting: None.
    """
    if before == after and after in (2**32 - 1, 2**64 - 1):
        return None, False
    if after >= before:
        return after - before, False
    for end in (2**32, 2**64):
        if end // 2 <= before < end and before - after > end // 2:
            return end - before + after, False
    return after, True


def moved_bytes(
    way: str, before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[int | None, bool]:
    """Return the bytes of a window, `sent` or `received`, and whether the counter began anew."""
    name = BYTES[way]
    if name not in before or name not in after:
        return None, False
    words, anew = grown(before[name], after[name])
    return None if words is None else words * WORD, anew


def moved_packets(
    way: str, before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[int | None, bool]:
    """Return the packets of a window, by whichever counter there is."""
    for name in PACKETS[way]:
        if name in before and name in after:
            return grown(before[name], after[name])
    return None, False
