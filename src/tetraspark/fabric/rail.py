"""One rail in a window of time: what its RDMA device moved, and whether it took part."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_wire import Cage, cages_of
from tetraspark.fabric.draw import other_end
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.fabric.prove_counters import moved_bytes, moved_packets
from tetraspark.fabric.prove_errors import errors

Verdict = Literal["carries", "idle", "errors", "unknown"]
IDLE_SHARE = 0.01
"""A rail with less than this part of what an even share would be does not take part: chatter."""


@dataclass(frozen=True)
class Rail:
    """What one RDMA device did.

    `sent` and `received` are bytes, None for a device that counts packets alone; `share` is its
    part of what all devices of its node sent and received. `used` is whether the site names it.
    `anew` says that counters began again within the window, so that figures are lower bounds.
    """

    node: str
    device: str
    netdev: str
    far: str
    used: bool
    sent: int | None
    received: int | None
    packets_sent: int | None
    packets_received: int | None
    share: float | None
    errors: Mapping[str, int]
    anew: bool
    verdict: Verdict

    @property
    def where(self) -> str:
        """The node and the device."""
        return f"{self.node} {self.device}"


def amount(one: Rail) -> str:
    """Say how much a rail moved both ways."""
    if one.sent is not None and one.received is not None:
        return f"{(one.sent + one.received) / 1e9:.2f} GB"
    return f"{(one.packets_sent or 0) + (one.packets_received or 0)} packets"


def rails_of(
    before: NodeFabric, after: NodeFabric, cabling: Cabling, used: Sequence[str]
) -> list[Rail]:
    """Return the rails of a node, each judged beside the others.

    `used` are the RDMA devices that the site names.
    """
    return _judged(list(_rails(before, after, cabling, used)))


def _rails(
    before: NodeFabric, after: NodeFabric, cabling: Cabling, used: Sequence[str]
) -> Iterator[Rail]:
    for cage, twins in cages_of(after).items():
        for index, new in enumerate(twins):
            old = before.function(new.rdma) if new.rdma else None
            if old is not None and new.rdma is not None:
                yield _rail(old, new, new.rdma, cage, cabling, new.rdma in used, index > 0)


def _rail(
    old: Function, new: Function, device: str, cage: Cage, cabling: Cabling, used: bool, twin: bool
) -> Rail:
    sent, s_anew = moved_bytes("sent", old.counters, new.counters)
    received, r_anew = moved_bytes("received", old.counters, new.counters)
    packets_sent, ps_anew = moved_packets("sent", old.counters, new.counters)
    packets_received, pr_anew = moved_packets("received", old.counters, new.counters)
    return Rail(
        node=cage.node,
        device=device,
        netdev=new.netdev,
        far=other_end(cabling, cage),
        used=used,
        sent=sent,
        received=received,
        packets_sent=packets_sent,
        packets_received=packets_received,
        share=None,
        errors=errors(old, new, shared=twin),
        anew=s_anew or r_anew or ps_anew or pr_anew,
        verdict="unknown",
    )


def _judged(rails: list[Rail]) -> list[Rail]:
    """Give the rails of one node their share and verdict, each beside the others."""
    moved = [_moved(one) for one in rails]
    known = [one for one in moved if one is not None]
    total = sum(known)
    even = total / len(known) if known else 0.0
    found = []
    for one, count in zip(rails, moved, strict=True):
        share = None if count is None or not total else count / total
        verdict: Verdict = "carries"
        if one.errors:
            verdict = "errors"
        elif count is None:
            verdict = "unknown"
        elif not count or count < IDLE_SHARE * even:
            verdict = "idle"
        found.append(replace(one, share=share, verdict=verdict))
    return found


def _moved(one: Rail) -> int | None:
    """Return the bytes both ways, or the packets of a device that counts no bytes."""
    if one.sent is not None and one.received is not None:
        return one.sent + one.received
    if one.packets_sent is not None and one.packets_received is not None:
        return one.packets_sent + one.packets_received
    return None
