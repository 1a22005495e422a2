"""One rank's RDMA connections: devices, region, queue pairs, and the C context that holds them."""

import ctypes
import mmap
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tetraspark.collectives.layout import ABORT, PROGRESS, RECORD, RECORDS, Layout
from tetraspark.collectives.local_lane import LocalLane
from tetraspark.collectives.port import own_fault
from tetraspark.collectives.verbs_card import Card, DeviceCard, check_cards
from tetraspark.collectives.verbs_native import (
    NO_DEVICE,
    DeviceState,
    LaneState,
    Remote,
    Status,
    VerbsConfig,
    verbs,
)
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.verbs_setup import find_devices
from tetraspark.collectives.wiring import Wiring

Key = tuple[int, int]
"""(peer, lane)."""


class Connections:
    """Made by the constructor, joined by `join`, alive from `start` to `close`.

    `devices` are this rank's, as they were found at this start; `unchecked` names those of which
    no PCI domain is known; `base` is the region's address. The constructor raises
    LaneRefusedError, OSError or BuildError.
    """

    def __init__(self, rank: int, wiring: Wiring, options: VerbsOptions, layout: Layout) -> None:
        self.rank = rank
        self.wiring = wiring
        self.peers = [peer for peer in range(wiring.world) if peer != rank]
        self.lanes_to = {peer: len(wiring.ends(rank, peer)) for peer in self.peers}
        self.keys = [(peer, lane) for peer in self.peers for lane in range(self.lanes_to[peer])]
        self._layout = layout
        self.devices, self.unchecked = find_devices(wiring, rank, options.min_mtu)
        self._memory = mmap.mmap(-1, layout.total)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.context: Any = verbs().tv_open(ctypes.byref(self._config(options)))
        if not self.context:
            raise MemoryError("no memory for the lanes")
        try:
            self.card = self._make_card(options)
        except BaseException:
            self.close(0.0)
            raise

    def _make_card(self, options: VerbsOptions) -> Card:
        return Card(
            node=self.wiring.nodes[self.rank],
            wiring=self.wiring.digest(),
            options=asdict(options),
            base=self.base,
            devices=tuple(map(self._add_device, self.devices)),
            lanes={peer: self._add_lanes(peer) for peer in self.peers},
        )

    def _config(self, options: VerbsOptions) -> VerbsConfig:
        layout = self._layout
        config = VerbsConfig(
            world=layout.world,
            rank=self.rank,
            lanes=layout.lanes,
            signal_every=options.signal_every,
            depth=options.depth,
            timeout=options.timeout,
            retries=options.retries,
            traffic_class=options.traffic_class,
            service_level=options.service_level,
            beat_ms=options.beat_ms,
            record_stride=RECORD,
            base=self.base,
            bytes=layout.total,
            progress=PROGRESS,
            status=layout.status_at(self.rank),
            records=RECORDS,
            abort_word=ABORT,
        )
        for row in config.device:
            for lane in range(len(row)):
                row[lane] = NO_DEVICE
        for key in self.keys:
            config.device[key[0]][key[1]] = self.device_of(key)
        return config

    def _add_device(self, lane: LocalLane) -> DeviceCard:
        arguments = (lane.device.encode(), lane.port, lane.gid.index)
        rkey = verbs().tv_add_device(self.context, *arguments)
        if not rkey:
            raise OSError(f"{lane.device}: {self._error()}")
        return DeviceCard(lane.device, lane.gid.value.packed.hex(), lane.mtu, rkey)

    def _add_lanes(self, peer: int) -> tuple[tuple[int, int], ...]:
        made = []
        for lane in range(self.lanes_to[peer]):
            number = verbs().tv_add_lane(self.context, peer, lane)
            if not number:
                raise OSError(f"lane {lane} to rank {peer}: {self._error()}")
            made.append((number, secrets.randbits(24)))
        return tuple(made)

    def _error(self) -> str:
        return str(self.context.contents.error.decode())

    def join(self, cards: Sequence[bytes]) -> None:
        """Join every lane to its other end, by every rank's card. Raises ValueError or OSError."""
        read = [Card.from_bytes(card) for card in cards]
        check_cards(self.card, read)
        for key in self.keys:
            self._join(key, read[key[0]])

    def _join(self, key: Key, card: Card) -> None:
        peer, lane = key
        own_device, far_device = self.wiring.ends(self.rank, peer)[lane]
        own, far = self.card.devices[own_device], card.device(far_device)
        number, first = card.lane_of(self.rank, lane)
        remote = Remote(
            qp=number,
            sequence_number=first,
            mtu=min(own.mtu, far.mtu),
            rkey=far.rkey,
            base=card.base,
            gid=(ctypes.c_uint8 * 16)(*bytes.fromhex(far.gid)),
        )
        begin = self.card.lanes[peer][lane][1]
        if not verbs().tv_join(self.context, peer, lane, begin, ctypes.byref(remote)):
            raise OSError(
                f"lane {lane} from {own.name} to {far.name} of node {card.node}: {self._error()}"
            )

    def start(self) -> None:
        """Begin to beat. Raises OSError when no thread can be made."""
        if not verbs().tv_start(self.context):
            raise OSError(self._error())

    def device_of(self, key: Key) -> int:
        """Return the index of the own device that carries a lane."""
        peer, lane = key
        return self.wiring.ends(self.rank, peer)[lane][0]

    def state(self, key: Key) -> LaneState:
        """Return a lane's state, live."""
        peer, lane = key
        state: LaneState = self.context.contents.state[peer][lane]
        return state

    def device_state(self, index: int) -> DeviceState:
        """Return an own device's state, live."""
        state: DeviceState = self.context.contents.device_state[index]
        return state

    def status(self, peer: int) -> Status:
        """Return what a peer last wrote of itself, live."""
        return Status.from_address(self.base + self._layout.status_at(peer))

    def broken_for(self, key: Key) -> float | None:
        """Return for how many seconds a lane has been broken, None while it works."""
        state = self.state(key)
        return time.monotonic() - state.broken_ns / 1e9 if state.broken else None

    def own_fault(self, index: int) -> str:
        """Say what is wrong with an own port now: its state, its address, its events."""
        lane = self.devices[index]
        fault = own_fault(lane.device, lane.port, lane.gid)
        if not fault and self.device_state(index).down:
            return "its own port reported an error"
        return fault

    def close(self, flush_s: float) -> None:
        """Give what is under way so many seconds to arrive, then release everything; once."""
        context, self.context = self.context, None
        if context:
            if flush_s:
                verbs().tv_flush(context, int(flush_s * 1e9))
            verbs().tv_close(context)
