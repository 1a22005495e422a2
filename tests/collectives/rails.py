"""A model of reliable connections that fail, for the C state machine of the failover.

Every lane is a connection with a number, as a queue pair has. A packet holds what the sender's
memory held when it was sent, may rest on the wire for as long as the test likes, also after its
connection was given up, and lands only in the connection it was sent to, once and in order.
"""

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tests.collectives import failover_native as tf
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.fabric import Fabric
from tetraspark.collectives.failure import Kind
from tetraspark.collectives.fake import FakeTransport
from tetraspark.collectives.native import Write
from tetraspark.collectives.transport import Finding

MAILBOX = ctypes.sizeof(tf.Message)
BEAT_S, GIVE_UP_S = 0.05, 0.4
"""How often a lane is proven alive, and how long a write may go unacknowledged."""

WINDOW = 6
"""Writes of a queue on the wire at once."""

Key = tuple[int, int, int]
"""(rank, peer, lane): one end, and the direction from it."""


@dataclass
class Packet:
    """Bytes on the wire, to one connection, with their number in it."""

    to: int
    number: int
    data: bytes
    land: Callable[[bytes], None]
    origin: "End"


@dataclass
class Work:
    """A write in a send queue. `read` takes the bytes when they are sent; `done`: acknowledged."""

    number: int
    read: Callable[[], bytes]
    land: Callable[[bytes], None]
    done: Callable[[], None] = lambda: None
    sent: bool = False
    since: float = 0.0


@dataclass
class End:
    """One end of a connection; `number` None is a queue pair that was reset."""

    number: int | None = None
    far: int | None = None
    first: int = 0
    expected: int = 0
    next_number: int = 0
    queue: list[Work] = field(default_factory=list)
    probed: bool = False
    telling: bool = False
    beat: float = 0.0

    def post(
        self,
        read: Callable[[], bytes],
        land: Callable[[bytes], None],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Put one write into the send queue."""
        self.queue.append(Work(self.next_number, read, land, done))
        self.next_number += 1


@dataclass
class Trouble:
    """What is wrong with the network. Lanes are named by (low rank, high rank, lane).

    `held`: packets rest on the wire; `leak` is the chance a tick that one arrives all the same.
    `lost`: packets vanish. `duplicate`, `reorder`: chances for each packet.
    """

    held: set[Key] = field(default_factory=set)
    lost: set[Key] = field(default_factory=set)
    leak: float = 0.02
    duplicate: float = 0.1
    reorder: float = 0.2


class Rails(Fabric):
    """A fabric whose lanes are connections. `rejoin`: whether failed ones are made anew."""

    def __init__(self, world: int, lanes: int, seed: int, *, rejoin: bool = False) -> None:
        super().__init__(world, seed)
        self.trouble = Trouble()
        self.counts = dict.fromkeys(("died", "late", "stopped", "rejoined"), 0)
        self.rejoin = rejoin
        self.lanes = lanes
        self.dice = random.Random(seed)
        self.numbers = iter(range(1, 1 << 30))
        self.pairs: dict[tuple[int, int], tf.Pair] = {}
        # Of each lane as its route names it: what was posted and is not known to have arrived.
        self.open: dict[Key, dict[int, bool]] = {}
        self.ends: dict[Key, End] = {}
        self.wire: dict[Key, list[Packet]] = {}
        self.mail: dict[Key, ctypes.Array[ctypes.c_char]] = {}
        self.waits: dict[Key, float] = {}
        self.plans: list[tuple[int, Callable[[], None]]] = []
        self.keys = [
            (rank, peer, lane)
            for rank in range(world)
            for peer in range(world)
            for lane in range(lanes)
            if rank != peer
        ]
        for key in self.keys:
            self.ends[key], self.wire[key] = End(number=next(self.numbers)), []
            self.mail[key] = ctypes.create_string_buffer(MAILBOX)
            self.pairs.setdefault(key[:2], tf.Pair())
        for key in self.keys:
            self.ends[key].far = self.ends[far(key)].number
        for pair in self.pairs.values():
            tf.failover().tf_open(pair, lanes, (1 << lanes) - 1)

    # ---- what a test does -----------------------------------------------------------------------

    def fail(self, key: Key) -> None:
        """Let one end see its lane fail: a completion, a port, a GID."""
        tf.failover().tf_fail(self.pairs[key[:2]], key[2])

    def phase(self, key: Key) -> int:
        """Return what an end says of its lane."""
        return int(self.pairs[key[:2]].own[key[2]].phase)

    def calm(self) -> bool:
        """Say whether no end waits for another's word."""
        return all(tf.failover().tf_calm(pair) for pair in self.pairs.values())

    # ---- time -----------------------------------------------------------------------------------

    def tick(self) -> None:
        """Let a little time pass on every lane, and every rank look after its own."""
        super().tick()
        due = [plan for at, plan in self.plans if at <= 0]
        self.plans = [(at - 1, plan) for at, plan in self.plans if at > 0]
        for plan in due:
            plan()
        for key in self.dice.sample(self.keys, len(self.keys)):
            self._send(key)
            self._arrive(key)
        for rank in self.order(list(self.endpoints)):
            if self.alive(rank) and rank not in self.faults.starved:
                for peer in range(self.world):
                    if peer != rank:
                        self._serve(rank, peer)

    def _take(self, rank: int, endpoint: Endpoint) -> None:
        write = endpoint.take()
        while write is not None:
            self._post(rank, write)
            write = endpoint.take()

    def _post(self, rank: int, write: Write) -> None:
        pair = self.pairs[rank, write.peer]
        self.open.setdefault((rank, write.peer, write.lane), {}).setdefault(write.sequence, False)
        lane = tf.failover().tf_carrier(pair, write.lane)
        if lane != tf.NONE:
            end = self.ends[rank, write.peer, lane]
            source, target = self.address(rank), self.address(write.peer)
            flag = int(write.flag).to_bytes(8, "little")

            end.post(
                lambda: ctypes.string_at(source + write.source, write.bytes),
                into(target + write.target),
            )
            done = partial(self._done, rank, write)
            end.post(lambda: flag, into(target + write.flag_target), done)
        tf.failover().tf_gave(pair, write, lane)

    def _done(self, rank: int, write: Write) -> None:
        """Acknowledge a stripe once all before it have arrived: one after it says nothing of it."""
        waiting = self.open[rank, write.peer, write.lane]
        if rank not in self.endpoints or write.sequence not in waiting:
            return
        waiting[write.sequence] = True
        for sequence in list(waiting):
            if not waiting[sequence]:
                return
            del waiting[sequence]
            last = Write.from_buffer_copy(write)
            last.sequence = sequence
            self.endpoints[rank].complete(last, acknowledged=True)

    # ---- the wire -------------------------------------------------------------------------------

    def _send(self, key: Key) -> None:
        end = self.ends[key]
        if end.number is None or end.far is None:
            return
        if end.queue and self.dice.random() < 0.1:
            # Go back: what is not acknowledged is sent again, from memory as it is now.
            for work in end.queue:
                work.sent = False
        for work in end.queue[:WINDOW]:
            if work.sent or self.dice.random() < 0.5:
                continue
            work.sent, work.since = True, work.since or self.time
            packet = Packet(end.far, work.number, work.read(), work.land, end)
            if lane_of(key) not in self.trouble.lost:
                self.wire[key].append(packet)
                if self.dice.random() < self.trouble.duplicate:
                    self.wire[key].append(packet)

    def _arrive(self, key: Key) -> None:
        wire, held = self.wire[key], lane_of(key) in self.trouble.held
        for _ in range(len(wire)):
            if self.dice.random() >= (self.trouble.leak if held else 0.6):
                return
            at = self.dice.randrange(len(wire)) if self.dice.random() < self.trouble.reorder else 0
            self._land(key, wire.pop(at), acknowledge=not held)

    def _land(self, key: Key, packet: Packet, *, acknowledge: bool) -> None:
        end = self.ends[far(key)]
        if end.number != packet.to or end.far is None:
            self.counts["died"] += 1
            return
        if packet.number == end.expected:
            self.counts["late"] += packet.origin is not self.ends[key]
            packet.land(packet.data)
            end.expected += 1
        if acknowledge and packet.number < end.expected and packet.origin is self.ends[key]:
            origin = packet.origin
            while origin.queue and origin.queue[0].number < end.expected:
                origin.queue.pop(0).done()

    # ---- what a rank does for its end of a pair -------------------------------------------------

    def _serve(self, rank: int, peer: int) -> None:
        library, pair = tf.failover(), self.pairs[rank, peer]
        base, size = self.address(rank), len(self.memory[rank])
        for lane in range(self.lanes):
            found = tf.Message.from_buffer(self.mail[rank, peer, lane])
            library.tf_hear(pair, found, base, size)
        for lane in range(self.lanes):
            self._beat((rank, peer, lane))
            wanted = library.tf_wanted(pair, lane)
            if wanted != tf.NOTHING and self.dice.random() < 0.2:
                self._act((rank, peer, lane), wanted)
                library.tf_think(pair, base, size)
        write = Write()
        while library.tf_owed(pair, write):
            self._post(rank, Write.from_buffer_copy(write))
        while library.tf_arrived(pair, write):
            self._done(rank, write)
        self._say(rank, peer)

    def _beat(self, key: Key) -> None:
        end = self.ends[key]
        if not tf.failover().tf_carries(self.pairs[key[:2]], key[2]):
            return
        if end.queue and end.queue[0].since and self.time - end.queue[0].since > GIVE_UP_S:
            self.fail(key)
        elif not end.queue and self.time - end.beat > BEAT_S:
            end.beat = self.time
            end.post(bytes, lambda _: None)

    def _act(self, key: Key, wanted: int) -> None:
        library, pair, end = tf.failover(), self.pairs[key[:2]], self.ends[key]
        if wanted == tf.STOP:
            self.ends[key] = End()
            self.counts["stopped"] += 1
            library.tf_stopped(pair, key[2])
            self.waits[key] = self.time + self.dice.uniform(0.0, 0.1)
        elif wanted == tf.OFFER and self.rejoin and self.time >= self.waits.get(key, 0.0):
            first = self.dice.randrange(1 << 10)
            self.ends[key] = End(number=next(self.numbers), first=first, next_number=first)
            offer = tf.Offer(qp=self.ends[key].number, sequence_number=first)
            library.tf_offered(pair, key[2], offer)
        elif wanted == tf.JOIN:
            offer = library.tf_peer(pair, key[2]).contents
            end.far, end.expected = int(offer.qp), int(offer.sequence_number)
            library.tf_joined(pair, key[2])
            self.waits[key] = self.time + 0.5
        elif wanted == tf.PROVE and not end.probed:
            end.probed = True
            end.post(bytes, lambda _: None, lambda: self._proven(key, end))
        elif wanted == tf.PROVE and self.time >= self.waits[key]:
            self.fail(key)

    def _proven(self, key: Key, end: End) -> None:
        if self.ends[key] is end and self.phase(key) == tf.JOINED:
            tf.failover().tf_proven(self.pairs[key[:2]], key[2])
            self.counts["rejoined"] += 1

    def _say(self, rank: int, peer: int) -> None:
        message = tf.Message()
        free = [lane for lane in range(self.lanes) if not self.ends[rank, peer, lane].telling]
        if (
            not free
            or self.dice.random() < 0.7
            or not tf.failover().tf_say(self.pairs[rank, peer], message)
        ):
            return
        data, half = bytes(message), self.dice.randrange(MAILBOX)
        for lane in free:
            if not tf.failover().tf_carries(self.pairs[rank, peer], lane):
                continue
            box = ctypes.addressof(self.mail[peer, rank, lane])
            # In two parts, so that it is read torn.
            end = self.ends[rank, peer, lane]
            end.post(lambda: data[:half], into(box))
            end.telling = True
            end.post(lambda: data[half:], into(box + half), partial(setattr, end, "telling", False))


def into(address: int) -> Callable[[bytes], None]:
    """Return what writes bytes to an address."""

    def land(data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    return land


def far(key: Key) -> Key:
    """Return the other end."""
    return key[1], key[0], key[2]


def lane_of(key: Key) -> Key:
    """Return the lane that both directions share."""
    return min(key[:2]), max(key[:2]), key[2]


class RailTransport(FakeTransport):
    """One rank's side: it fails when no lane to a peer is left."""

    def __init__(self, rails: Rails, rank: int) -> None:
        super().__init__(rails, rank)
        self._rails = rails

    def finding(self) -> Finding | None:
        """Name the first peer without a lane."""
        for (rank, peer), pair in self._rails.pairs.items():
            if rank == self._rank and tf.failover().tf_carrier(pair, 0) == tf.NONE:
                return Finding(Kind.LANE, peer, 0, "no lane to it is left")
        return None
