"""RDMA lanes between machines: reliable connections over libibverbs."""

import ctypes
import mmap
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.lane_verdict import GATHER_S, BrokenLane, LaneMap, judge_lanes
from tetraspark.collectives.layout import ABORT, PROGRESS, RECORD, RECORDS, Layout
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.local_lane import LocalLane
from tetraspark.collectives.port import own_fault
from tetraspark.collectives.transport import Finding, Phase, Seen
from tetraspark.collectives.verbs_card import Card, DeviceCard, check_cards
from tetraspark.collectives.verbs_native import (
    NO_DEVICE,
    Event,
    Lanes,
    LaneState,
    Remote,
    Status,
    VerbsConfig,
    verbs,
)
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.verbs_setup import find_devices, port_counters
from tetraspark.collectives.wiring import Wiring

FLUSH_S = 0.25
"""Time given at the end to what is under way: the goodbye, a failure record."""

ANSWERS = 4
"""Acknowledged beats since a peer's last own one, before its silence means that it is stopped."""

Key = tuple[int, int]
"""(peer, lane)."""


class VerbsTransport:
    """One rank's end; GIDs are looked up in `open`, so that each start finds its own.

    Peers' regions are not mapped: the proxy's writes are posted by C in the caller's thread, and
    one C thread beats, drains completions and passes failures on.
    """

    name = "verbs"
    direct = False
    pull = False

    def __init__(self, rank: int, wiring: Wiring, options: VerbsOptions | None = None) -> None:
        self._rank = rank
        self._wiring = wiring
        self._options = options or VerbsOptions()
        self._peers = [peer for peer in range(wiring.world) if peer != rank]
        self._lanes_to = {peer: len(wiring.ends(rank, peer)) for peer in self._peers}
        self._keys = [(peer, lane) for peer in self._peers for lane in range(self._lanes_to[peer])]
        self._found: list[LocalLane] = []
        self._unchecked: list[str] = []
        self._memory: mmap.mmap | None = None
        self._base = 0
        self._layout: Layout | None = None
        self._card: Card | None = None
        self._context: Any = None
        self._endpoint: Endpoint | None = None
        self._beats: dict[int, tuple[int, int, float]] = {}
        self._verdict: Finding | None = None

    # ---- opening --------------------------------------------------------------------------------

    def open(self, layout: Layout) -> bytes:
        """Check the devices, register the region, make queue pairs.

        Raises LaneRefusedError, OSError, ValueError or BuildError.
        """
        if (layout.world, layout.lanes) != (self._wiring.world, self._wiring.lanes):
            raise ValueError(
                f"the wiring has {self._wiring.world} ranks and {self._wiring.lanes} lanes, "
                f"the group {layout.world} and {layout.lanes}"
            )
        self._layout = layout
        self._found, self._unchecked = find_devices(self._wiring, self._rank, self._options.min_mtu)
        self._memory = mmap.mmap(-1, layout.total)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._context = verbs().tv_open(ctypes.byref(self._config(layout)))
        if not self._context:
            raise MemoryError("no memory for the lanes")
        devices = tuple(map(self._add_device, self._found))
        lanes = {peer: self._add_lanes(peer) for peer in self._peers}
        self._card = Card(
            node=self._wiring.nodes[self._rank],
            wiring=self._wiring.digest(),
            options=asdict(self._options),
            base=self._base,
            devices=devices,
            lanes=lanes,
        )
        return self._card.to_bytes()

    def _config(self, layout: Layout) -> VerbsConfig:
        options = self._options
        config = VerbsConfig(
            world=layout.world,
            rank=self._rank,
            lanes=layout.lanes,
            signal_every=options.signal_every,
            depth=options.depth,
            timeout=options.timeout,
            retries=options.retries,
            traffic_class=options.traffic_class,
            service_level=options.service_level,
            beat_ms=options.beat_ms,
            record_stride=RECORD,
            base=self._base,
            bytes=layout.total,
            progress=PROGRESS,
            status=layout.status_at(self._rank),
            records=RECORDS,
            abort_word=ABORT,
        )
        for peer in range(len(config.device)):
            for lane in range(len(config.device[peer])):
                config.device[peer][lane] = NO_DEVICE
        for peer, lane in self._keys:
            config.device[peer][lane] = self._wiring.ends(self._rank, peer)[lane][0]
        return config

    def _add_device(self, lane: LocalLane) -> DeviceCard:
        arguments = (lane.device.encode(), lane.port, lane.gid.index)
        rkey = verbs().tv_add_device(self._context, *arguments)
        if not rkey:
            raise OSError(f"{lane.device}: {self._error()}")
        return DeviceCard(lane.device, lane.gid.value.packed.hex(), lane.mtu, rkey)

    def _add_lanes(self, peer: int) -> tuple[tuple[int, int], ...]:
        made = []
        for lane in range(self._lanes_to[peer]):
            number = verbs().tv_add_lane(self._context, peer, lane)
            if not number:
                raise OSError(f"lane {lane} to rank {peer}: {self._error()}")
            made.append((number, secrets.randbits(24)))
        return tuple(made)

    def connect(self, cards: Sequence[bytes]) -> list[int]:
        """Join every lane to its other end; returns the own region's address, 0 for others'."""
        assert self._card is not None
        read = [Card.from_bytes(card) for card in cards]
        check_cards(self._card, read)
        for peer, lane in self._keys:
            self._join(peer, lane, read[peer])
        return [self._base if rank == self._rank else 0 for rank in range(self._wiring.world)]

    def _join(self, peer: int, lane: int, card: Card) -> None:
        assert self._card is not None
        own_device, far_device = self._wiring.ends(self._rank, peer)[lane]
        own, far = self._card.devices[own_device], card.devices[far_device]
        number, first = card.lanes[self._rank][lane]
        remote = Remote(
            qp=number,
            sequence_number=first,
            mtu=min(own.mtu, far.mtu),
            rkey=far.rkey,
            base=card.base,
            gid=(ctypes.c_uint8 * 16)(*bytes.fromhex(far.gid)),
        )
        begin = self._card.lanes[peer][lane][1]
        if not verbs().tv_join(self._context, peer, lane, begin, ctypes.byref(remote)):
            raise OSError(
                f"lane {lane} from {own.name} to {far.name} of node {card.node}: {self._error()}"
            )

    def _error(self) -> str:
        return str(self._context.contents.error.decode())

    def attach(self, endpoint: Endpoint) -> None:
        """Post this endpoint's writes as they are begun."""
        self._endpoint = endpoint
        mover = ctypes.cast(verbs().tv_move, ctypes.c_void_p).value
        context = ctypes.cast(self._context, ctypes.c_void_p).value
        assert mover is not None and context is not None
        endpoint.set_mover(mover, context)

    def seal(self) -> None:
        """Every rank is connected: begin to beat. Raises OSError when no thread can be made."""
        if not verbs().tv_start(self._context):
            raise OSError(self._error())

    # ---- what is known --------------------------------------------------------------------------

    def now(self) -> float:
        """Return the monotonic clock."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def _status(self, peer: int) -> Status:
        assert self._layout is not None
        return Status.from_address(self._base + self._layout.status_at(peer))

    def seen(self, peer: int) -> Seen | None:
        """Return what the peer last wrote of itself."""
        line = self._status(peer)
        if not line.beat:
            return None
        acked = tuple(line.acked[: self._wiring.lanes])
        return Seen(line.doorbell, line.posted, line.completed, line.phase, acked)

    def life(self, peer: int) -> Life:
        """Judge by lanes and beats: dead without a lane, stopped when lanes live and beats do not.

        A stopped process is told from a late one because the beats come from a thread of the
        proxy: a rank that computes goes on beating.
        """
        since = [self._broken_for(self._state((peer, lane))) for lane in self._lanes(peer)]
        if all(one is not None and one >= GATHER_S for one in since):
            return Life.DEAD
        beat, now = int(self._status(peer).beat), self.now()
        answers = sum(int(self._state((peer, lane)).completions) for lane in self._lanes(peer))
        last, before, at = self._beats.setdefault(peer, (beat, answers, now))
        if beat != last:
            self._beats[peer] = (beat, answers, now)
            return Life.RUNNING
        # Silence without answers is an outage: the lanes themselves will tell.
        silent = beat and now - at >= self._options.stale_s
        return Life.STOPPED if silent and answers - before >= ANSWERS else Life.RUNNING

    def _lanes(self, peer: int) -> range:
        return range(self._lanes_to[peer])

    def _state(self, key: Key) -> LaneState:
        peer, lane = key
        state: LaneState = self._context.contents.state[peer][lane]
        return state

    def _broken_for(self, state: LaneState) -> float | None:
        return time.monotonic() - state.broken_ns / 1e9 if state.broken else None

    def finding(self) -> Finding | None:
        """Return why a lane is broken, once that can be told; the first verdict stays."""
        if self._context is None or self._verdict is not None:
            return self._verdict
        broken = [key for key in self._keys if self._state(key).broken]
        if broken:
            closed = frozenset(peer for peer in self._peers if self._closed(peer))
            lanes = [self._broken_lane(key) for key in broken]
            self._verdict = judge_lanes(self._map(), lanes, closed)
        return self._verdict

    def _map(self) -> LaneMap:
        behind: dict[str, frozenset[int]] = {}
        for peer, lane in self._keys:
            device = self._found[self._wiring.ends(self._rank, peer)[lane][0]].device
            behind[device] = behind.get(device, frozenset()) | {peer}
        return LaneMap(self._rank, self._lanes_to, behind)

    def _closed(self, peer: int) -> bool:
        return bool(self._status(peer).phase == Phase.CLOSING)

    def _broken_lane(self, key: Key) -> BrokenLane:
        peer, lane = key
        state = self._state(key)
        index = self._wiring.ends(self._rank, peer)[lane][0]
        return BrokenLane(
            peer=peer,
            lane=lane,
            device=self._found[index].device,
            since_s=self._broken_for(state) or 0.0,
            cause=cause_of(state),
            own_fault=self._own_fault(index),
        )

    def _own_fault(self, index: int) -> str:
        """Say what is wrong with an own port now: its state, its address, its events."""
        lane = self._found[index]
        fault = own_fault(lane.device, lane.port, lane.gid)
        if not fault and self._context.contents.device_state[index].down:
            return "its own port reported an error"
        return fault

    def details(self) -> dict[str, Any]:
        """Return devices with their counters and events, and every lane's."""
        if self._context is None:
            return {}
        contents: Lanes = self._context.contents
        return {
            "node": self._wiring.nodes[self._rank],
            "devices": [self._device(index) for index in range(len(self._found))],
            "pci_domain_unknown": self._unchecked,
            "proxy": {"polls": int(contents.polls), "wakeups": int(contents.wakeups)},
            "lanes": [self._lane(key) for key in self._keys],
        }

    def _device(self, index: int) -> dict[str, Any]:
        lane = self._found[index]
        events = self._context.contents.device_state[index].events
        return {
            "device": lane.device,
            "port": lane.port,
            "address": str(lane.gid.address),
            "gid_index": lane.gid.index,
            "mtu": lane.mtu,
            "events": {event.name.lower(): int(events[event]) for event in Event},
            "counters": port_counters(lane.device, lane.port),
        }

    def _lane(self, key: Key) -> dict[str, Any]:
        peer, lane = key
        state = self._state(key)
        own, far = self._wiring.ends(self._rank, peer)[lane]
        return {
            "peer": peer,
            "lane": lane,
            "device": self._found[own].device,
            "peer_device": self._wiring.devices[peer][far].device,
            "broken": cause_of(state) if state.broken else None,
            **{name: int(getattr(state, name)) for name in LANE_COUNTERS},
        }

    # ---- ending ---------------------------------------------------------------------------------

    def leave_record(self, data: bytes) -> None:
        """Leave the record here and send it, with what others left, over every lane."""
        assert self._layout is not None
        assert self._endpoint is not None
        offset = self._layout.record_at(self._rank)
        self._endpoint.leave_record(self._rank, offset, data, alarm=False)
        verbs().tv_spread(self._context)

    def close(self) -> None:
        """Let the last status arrive, then release everything."""
        context, self._context = self._context, None
        if context:
            if self._endpoint is not None:
                verbs().tv_flush(context, int(FLUSH_S * 1e9))
            verbs().tv_close(context)
        self._memory = None


LANE_COUNTERS = ("writes", "signalled", "completions", "beats", "stalls")


def cause_of(state: LaneState) -> str:
    """Say in the device's words why a lane is broken."""
    if state.event:
        return f"event: {verbs().tv_event_text(state.event).decode()}"
    if state.error:
        return f"a post failed with error {state.error}"
    text = verbs().tv_status_text(state.status).decode()
    return f"{text} (status {state.status}, vendor {state.vendor:#x})"
