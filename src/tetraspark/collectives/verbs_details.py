"""What the RDMA lanes say of themselves in a group's state."""

from typing import Any

from tetraspark.collectives.verbs_connections import Connections, Key
from tetraspark.collectives.verbs_native import Event, FoundBy, LaneState, verbs
from tetraspark.collectives.verbs_setup import port_counters

LANE_COUNTERS = (
    *("writes", "signalled", "completions", "beats", "stalls"),
    *("failures", "rejoined", "resent", "generation", "lost_at", "back_at"),
)


def details(found: Connections) -> dict[str, Any]:
    """Return devices with their counters and events, and every lane's; JSON-able."""
    contents = found.context.contents
    return {
        "node": found.wiring.nodes[found.rank],
        "devices": [_device(found, index) for index in found.devices.usable],
        "pci_domain_unknown": found.devices.unchecked,
        "degraded": degraded(found),
        "proxy": {"polls": int(contents.polls), "wakeups": int(contents.wakeups)},
        "lanes": [_lane(found, key) for key in found.keys],
    }


def _device(found: Connections, index: int) -> dict[str, Any]:
    lane = found.devices.usable[index]
    events = found.device_state(index).events
    return {
        "device": lane.device,
        "port": lane.port,
        "address": str(lane.gid.address),
        "gid_index": lane.gid.index,
        "mtu": lane.mtu,
        "events": {event.name.lower(): int(events[event]) for event in Event},
        "counters": port_counters(lane.device, lane.port),
    }


def _lane(found: Connections, key: Key) -> dict[str, Any]:
    peer, lane = key
    state = found.state(key)
    own, far = found.wiring.ends(found.rank, peer)[lane]
    return {
        "peer": peer,
        "lane": lane,
        "device": found.device_name(own),
        "peer_device": found.wiring.devices[peer][far].device,
        "state": "down" if state.broken else "up",
        "broken": cause(found, key) if state.broken else None,
        "settled_s": _settled_s(state),
        **{name: int(getattr(state, name)) for name in LANE_COUNTERS},
    }


def _settled_s(state: LaneState) -> float | None:
    """Return how long the last failover of a lane took here, once both ends had agreed."""
    return round((state.settled_ns - state.broken_ns) / 1e9, 4) if state.settled_ns else None


def degraded(found: Connections) -> list[str]:
    """Name every lane that does not carry, and why; [] when all do."""
    return [
        f"lane {key[1]} to rank {key[0]} ({found.device_name(found.device_of(key))}): "
        f"{cause(found, key)}"
        for key in found.keys
        if found.state(key).broken
    ]


def cause(found: Connections, key: Key) -> str:
    """Say why a lane is broken."""
    state = found.state(key)
    if state.stuck:
        return f"{cause_of(state)}; its queue pair could not be reset (error {state.stuck})"
    if state.found_by == FoundBy.START:
        return found.absent.get(key, "it was not there at the start")
    return cause_of(state)


def cause_of(state: LaneState) -> str:
    """Say in the device's words why a lane is broken."""
    if state.found_by == FoundBy.PEER:
        return "the peer found it broken"
    if state.event:
        return f"event: {verbs().tv_event_text(state.event).decode()}"
    if state.error:
        return f"a post failed with error {state.error}"
    text = verbs().tv_status_text(state.status).decode()
    return f"{text} (status {state.status}, vendor {state.vendor:#x})"
