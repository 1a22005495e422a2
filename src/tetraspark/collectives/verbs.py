"""RDMA lanes between machines: reliable connections over libibverbs."""

import ctypes
import logging
import time
from collections.abc import Sequence
from typing import Any

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.lane_verdict import GATHER_S, BrokenLane, LaneMap, judge_lanes
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.transport import Finding, Phase, Seen
from tetraspark.collectives.verbs_connections import Connections, Key
from tetraspark.collectives.verbs_details import cause, details
from tetraspark.collectives.verbs_native import verbs
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import Wiring

log = logging.getLogger(__name__)

FLUSH_S = 0.25
"""Time given at the end to what is under way: the goodbye, a failure record."""

ANSWERS = 4
"""Acknowledged beats since a peer's last own one, before its silence means that it is stopped."""


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
        self._layout: Layout | None = None
        self._made: Connections | None = None
        self._endpoint: Endpoint | None = None
        self._beats: dict[int, tuple[int, int, float]] = {}
        self._verdict: Finding | None = None
        self._lost: frozenset[Key] = frozenset()

    @property
    def connections(self) -> Connections:
        """The connections, between `open` and `close`. Raises RuntimeError outside."""
        if self._made is None or self._made.context is None:
            raise RuntimeError("the RDMA lanes are not open")
        return self._made

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
        self._made = Connections(self._rank, self._wiring, self._options, layout)
        return self._made.card.to_bytes()

    def connect(self, cards: Sequence[bytes]) -> list[int]:
        """Join every lane to its other end; returns the own region's address, 0 for others'."""
        self.connections.join(cards)
        base = self.connections.base
        return [base if rank == self._rank else 0 for rank in range(self._wiring.world)]

    def attach(self, endpoint: Endpoint) -> None:
        """Post this endpoint's writes as they are begun."""
        self._endpoint = endpoint
        mover = ctypes.cast(verbs().tv_move, ctypes.c_void_p).value
        context = ctypes.cast(self.connections.context, ctypes.c_void_p).value
        assert mover is not None and context is not None
        endpoint.set_mover(mover, context)

    def seal(self) -> None:
        """Every rank is connected: begin to beat. Raises OSError when no thread can be made."""
        self.connections.start()

    # ---- what is known --------------------------------------------------------------------------

    def now(self) -> float:
        """Return the monotonic clock."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def seen(self, peer: int) -> Seen | None:
        """Return what the peer last wrote of itself."""
        line = self.connections.status(peer)
        if not line.beat:
            return None
        acked = tuple(line.acked[: self._wiring.lanes])
        return Seen(line.doorbell, line.posted, line.completed, line.phase, acked)

    def life(self, peer: int) -> Life:
        """Judge by lanes and beats: dead without a lane, stopped when lanes live and beats do not.

        A stopped process is told from a late one because the beats come from a thread of the
        proxy: a rank that computes goes on beating.
        """
        made = self.connections
        keys = [key for key in made.keys if key[0] == peer]
        since = [made.broken_for(key) for key in keys]
        if all(one is not None and one >= GATHER_S for one in since):
            return Life.DEAD
        beat, now = int(made.status(peer).beat), self.now()
        answers = sum(int(made.state(key).completions) for key in keys)
        last, before, at = self._beats.setdefault(peer, (beat, answers, now))
        if beat != last:
            self._beats[peer] = (beat, answers, now)
            return Life.RUNNING
        # Silence without answers is an outage: the lanes themselves will tell.
        silent = beat and now - at >= self._options.stale_s
        return Life.STOPPED if silent and answers - before >= ANSWERS else Life.RUNNING

    def finding(self) -> Finding | None:
        """Return why a lane is broken, once that can be told; the first verdict stays."""
        made = self._made
        if made is None or made.context is None or self._verdict is not None:
            return self._verdict
        broken = [key for key in made.keys if made.state(key).broken]
        self._tell(frozenset(broken))
        if any(self._short(peer, broken) for peer in {key[0] for key in broken}):
            closed = frozenset(peer for peer in made.peers if self._closed(peer))
            lanes = [self._broken_lane(key) for key in broken]
            self._verdict = judge_lanes(self._map(), lanes, closed)
        return self._verdict

    def _short(self, peer: int, broken: Sequence[Key]) -> bool:
        """Say whether too few lanes to a peer work, or one of them could not be stopped."""
        made = self.connections
        lost = [key for key in broken if key[0] == peer]
        stuck = any(made.state(key).stuck for key in lost)
        return stuck or made.lanes_to[peer] - len(lost) < made.needed[peer]

    def _tell(self, broken: frozenset[Key]) -> None:
        """Log each lane that was lost or came back, once."""
        made = self.connections
        for key in sorted(broken ^ self._lost):
            if self._closed(key[0]):
                continue
            device = made.device_name(made.device_of(key))
            words = (self._rank, key[1], key[0], device)
            if key in broken:
                why = cause(made, key)
                log.warning("DEGRADED: rank %d lost lane %d to rank %d (%s): %s", *words, why)
            else:
                log.warning("rank %d has lane %d to rank %d (%s) again", *words)
        self._lost = broken

    def _map(self) -> LaneMap:
        made = self.connections
        behind: dict[str, frozenset[int]] = {}
        for key in made.keys:
            device = made.device_name(made.device_of(key))
            behind[device] = behind.get(device, frozenset()) | {key[0]}
        return LaneMap(self._rank, made.lanes_to, behind, made.needed)

    def _closed(self, peer: int) -> bool:
        return bool(self.connections.status(peer).phase == Phase.CLOSING)

    def _broken_lane(self, key: Key) -> BrokenLane:
        made = self.connections
        index = made.device_of(key)
        return BrokenLane(
            peer=key[0],
            lane=key[1],
            device=made.device_name(index),
            since_s=made.broken_for(key) or 0.0,
            cause=cause(made, key),
            own_fault=made.own_fault(index),
            stuck=bool(made.state(key).stuck),
        )

    def details(self) -> dict[str, Any]:
        """Return devices with their counters and events, and every lane's; {} when not open."""
        made = self._made
        return details(made) if made is not None and made.context is not None else {}

    # ---- ending ---------------------------------------------------------------------------------

    def leave_record(self, data: bytes) -> None:
        """Leave the record here and send it, with what others left, over every lane."""
        assert self._layout is not None
        assert self._endpoint is not None
        offset = self._layout.record_at(self._rank)
        self._endpoint.leave_record(self._rank, offset, data, alarm=False)
        verbs().tv_spread(self.connections.context)

    def close(self) -> None:
        """Let the last status arrive, then release everything."""
        if self._made is not None:
            self._made.close(FLUSH_S if self._endpoint is not None else 0.0)
