"""The state of one rank's end of a group, as a plain dict for a status command."""

from typing import Any

from tetraspark.collectives.opening import Link
from tetraspark.collectives.supervisor import Lateness


def state_of(link: Link, *, closed: bool) -> dict[str, Any]:
    """Return counters and verdicts, JSON-able.

    `verdict`: "ready", "waiting" (an operation is pending), "failed" or "closed". Bytes and
    writes are totals this rank posted on each lane, the proof of the opening included.
    """
    root = link.supervisor.root
    found: dict[str, Any] = {
        "rank": link.rank,
        "world": link.layout.world,
        "transport": link.transport.name,
        "settings_digest": link.settings.digest(),
        "root": root.as_dict() if root else None,
    }
    if closed:
        return found | {"verdict": "closed"}
    state = link.endpoint.state
    waiting = "waiting" if state.pending else "ready"
    counters = state.counters
    return found | {
        "verdict": "failed" if root or link.supervisor.settling else waiting,
        "sequence": link.endpoint.sequence,
        "operations": int(counters.operations),
        "waits": {name: int(getattr(counters, name)) for name in WAITS},
        "details": link.transport.details(),
        "peers": [_peer(link, peer) for peer in sorted(link.supervisor.late)],
    }


WAITS = ("spins", "yields", "sleeps", "wakes")


def _peer(link: Link, peer: int) -> dict[str, Any]:
    seen = link.transport.seen(peer)
    late: Lateness = link.supervisor.late[peer]
    counters = link.endpoint.state.counters
    return {
        "rank": peer,
        "life": str(link.transport.life(peer)),
        "begun": seen.doorbell if seen else None,
        "completed": seen.completed if seen else None,
        "late": {"count": late.count, "longest_s": round(late.longest_s, 3), "last": late.last},
        "lanes": [
            {
                "lane": lane,
                "writes": int(counters.writes[peer][lane]),
                "bytes": int(counters.bytes[peer][lane]),
                "acked": acked,
            }
            for lane, acked in link.endpoint.acked(peer).items()
        ],
    }
