"""One rank's RDMA connections: devices, region, queue pairs, and the C context that holds them."""

import ctypes
import mmap
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tetraspark.collectives.gid import gid_of
from tetraspark.collectives.layout import ABORT, PAGE, PROGRESS, RECORD, RECORDS, Layout, round_up
from tetraspark.collectives.port import own_fault
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD
from tetraspark.collectives.verbs_card import Card, DeviceCard, check_cards
from tetraspark.collectives.verbs_native import (
    MAIL_BYTES,
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

    `devices` are this rank's, as they were found at this start; `absent` are lanes that could not
    be used then, and why; `base` is the region's address. The constructor raises LaneRefusedError,
    OSError or BuildError.
    """

    def __init__(self, rank: int, wiring: Wiring, options: VerbsOptions, layout: Layout) -> None:
        self.rank = rank
        self.wiring = wiring
        self.peers = [peer for peer in range(wiring.world) if peer != rank]
        self.lanes_to = {peer: len(wiring.ends(rank, peer)) for peer in self.peers}
        self.keys = [(peer, lane) for peer in self.peers for lane in range(self.lanes_to[peer])]
        self.needed = {peer: options.needed(wired) for peer, wired in self.lanes_to.items()}
        self.absent: dict[Key, str] = {}
        self._layout = layout
        self.devices = find_devices(wiring, rank, options)
        self._mail = round_up(layout.total, PAGE)
        self._bytes = self._mail + 2 * MAX_WORLD * MAX_LANES * MAIL_BYTES
        self._memory = mmap.mmap(-1, self._bytes)
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
            devices=tuple(map(self._add_device, range(len(self.wiring.devices[self.rank])))),
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
            failover=options.min_lanes > 0,
            base=self.base,
            bytes=self._bytes,
            progress=PROGRESS,
            status=layout.status_at(self.rank),
            records=RECORDS,
            abort_word=ABORT,
            mail=self._mail,
        )
        for row in config.device:
            for lane in range(len(row)):
                row[lane] = NO_DEVICE
        for key in self.keys:
            config.device[key[0]][key[1]] = self.device_of(key)
        return config

    def _add_device(self, index: int) -> DeviceCard:
        """Open a device; one that is absent may come later, so it is opened if it can be."""
        lane = self.devices.usable.get(index)
        if lane is None:
            choice = self.wiring.devices[self.rank][index]
            gid = gid_of(choice.address) if choice.address else bytes(16)
            reason = "; ".join(map(str, self.devices.absent[index]))
            port = choice.port or 1
            rkey = verbs().tv_add_device(self.context, choice.device.encode(), port, 0, gid)
            return DeviceCard(choice.device, gid.hex(), 0, rkey, reason)
        arguments = (lane.device.encode(), lane.port, lane.gid.index, lane.gid.value.packed)
        rkey = verbs().tv_add_device(self.context, *arguments)
        if not rkey:
            raise OSError(f"{lane.device}: {self._error()}")
        return DeviceCard(lane.device, lane.gid.value.packed.hex(), lane.mtu, rkey)

    def _add_lanes(self, peer: int) -> tuple[tuple[int, int], ...]:
        made = []
        for lane in range(self.lanes_to[peer]):
            if self.device_of((peer, lane)) in self.devices.absent:
                made.append((0, 0))
                continue
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
            own, far = self.wiring.ends(self.rank, key[0])[key[1]]
            absent = self.card.devices[own].absent or read[key[0]].devices[far].absent
            if absent:
                self.absent[key] = absent
        for peer, needed in self.needed.items():
            lost = [reason for key, reason in self.absent.items() if key[0] == peer]
            if self.lanes_to[peer] - len(lost) < needed:
                raise ValueError(f"fewer than {needed} lanes to rank {peer}: {'; '.join(lost)}")
        for key in self.keys:
            if key not in self.absent:
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

    def device_name(self, index: int) -> str:
        """Return the name of an own device."""
        return self.wiring.devices[self.rank][index].device

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
        lane = self.devices.usable.get(index)
        if lane is None:
            return ""
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
