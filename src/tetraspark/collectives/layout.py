"""Where everything lies in one rank's region: a pure value, the same on every rank.

Every rank owns one region. All offsets are from its start, little-endian, naturally aligned; a
field that another party polls has a 128-byte line of its own. "Peer" writes arrive through the
transport: stores of another process (shm), RDMA writes (a NIC), stores of a kernel.

| area | width | writer |
|---|---|---|
| control | u64 magic, u32 abi, rank, world, lanes, u64 nonce | owner, once, before it is mapped |
| progress | u32 doorbell, posted, completed, phase | owner (doorbell and completed: a kernel) |
| acked | u32 [8 peers][4 lanes], last sequence acknowledged | owner's proxy |
| arrivals | u32 [2 parities], a counter and the futex word | peers, atomic add |
| waiting | u32, 1 while the owner sleeps | owner |
| abort | u64, 0 or 1 + rank that raised it | any rank; kernels poll only this word |
| record[source] | u64 word (length + 1), 504 bytes of JSON or nothing | source, once |
| status[source] | u32 doorbell, posted, completed, phase, acked[4], u64 beat | source |
| flag[source][parity][stripe] | u64 on a line of its own | source, after the stripe |
| outbox[parity][stripe] | u64 flag, u64 0, u32 units[8 peers], a stripe to post | owner's kernel |
| send[parity] | header (128) + payload | owner |
| send_gather[parity] | header + payload | owner |
| send_chunk[parity][peer] | header + chunk; no own row | owner |
| recv[source][parity] | header + payload; no own row | source |
| recv_gather[source][parity] | header + payload; no own row | source |
| recv_chunk[source][parity] | header + chunk; no own row | source |

The u64 after a flag, on its line, is a digest of the shape, which kernels alone write and read.
A slot's header is u64 flag, u32 ndim, u32 dims[8], the sender's exact shape, and a u32 hash of
the extents it believes all ranks to have. Slots start on a 4096-byte page. The chunk slots are for
reduce-scatter and two-shot, and are absent where `two_shot_bytes` is 0: a chunk is one rank's
share of a tensor, so they need little more than a W-th of what it takes. An all-gather of chunks
sends every peer the same, from the first row. The receive areas come
last: a transport that reads send slots in place never touches them, and on tmpfs an untouched
page takes no memory.
"""

from dataclasses import dataclass
from functools import cached_property

from tetraspark.collectives.flags import MAX_UNITS, UNIT
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD

LINE = 128
PAGE = 4096
HEADER = LINE
RECORD = 4 * LINE

CONTROL = 0
PROGRESS = LINE
ACKED = 2 * LINE
ARRIVALS = 3 * LINE
WAITING = 4 * LINE
ABORT = 5 * LINE
RECORDS = 6 * LINE


def round_up(value: int, step: int) -> int:
    """Return the smallest multiple of `step` that is at least `value`."""
    return -(-value // step) * step


@dataclass(frozen=True)
class Layout:
    """Offsets of one group's regions, in bytes. Raises ValueError on sizes that cannot work."""

    world: int
    lanes: int
    reduce_bytes: int
    gather_bytes: int
    two_shot_bytes: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.world <= MAX_WORLD:
            raise ValueError(f"world {self.world} is outside 2..{MAX_WORLD}")
        if not 1 <= self.lanes <= MAX_LANES:
            raise ValueError(f"{self.lanes} lanes: wanted 1..{MAX_LANES}")
        for name in ("reduce_bytes", "gather_bytes", "two_shot_bytes"):
            value = getattr(self, name)
            least = 0 if name == "two_shot_bytes" else UNIT
            if value % UNIT or not least <= value <= MAX_UNITS * UNIT:
                raise ValueError(f"{name} {value}: wanted a multiple of 16 up to 256 MiB")

    @cached_property
    def slot_stride(self) -> int:
        """Bytes from one all-reduce slot to the next."""
        return round_up(HEADER + self.reduce_bytes, PAGE)

    @cached_property
    def gather_stride(self) -> int:
        """Bytes from one all-gather slot to the next."""
        return round_up(HEADER + self.gather_bytes, PAGE)

    @cached_property
    def chunk_bytes(self) -> int:
        """Bytes of the largest chunk; 0 without two-shot."""
        return round_up(self.two_shot_bytes, self.world * UNIT) // self.world

    @cached_property
    def chunk_stride(self) -> int:
        """Bytes from one chunk slot to the next; 0 without two-shot."""
        return round_up(HEADER + self.chunk_bytes, PAGE) if self.two_shot_bytes else 0

    @cached_property
    def status(self) -> int:
        """Start of the status lines."""
        return RECORDS + self.world * RECORD

    @cached_property
    def flags(self) -> int:
        """Start of the flags."""
        return self.status + self.world * LINE

    @cached_property
    def outbox(self) -> int:
        """Start of the marks with which a kernel hands stripes to the relay."""
        return self.flags + (self.world - 1) * 2 * self.lanes * LINE

    @cached_property
    def send(self) -> int:
        """Start of the two all-reduce send slots."""
        return round_up(self.outbox + 2 * self.lanes * LINE, PAGE)

    @cached_property
    def send_gather(self) -> int:
        """Start of the two all-gather send slots."""
        return self.send + 2 * self.slot_stride

    @cached_property
    def send_chunk(self) -> int:
        """Start of the chunk send slots: a row a peer for each parity."""
        return self.send_gather + 2 * self.gather_stride

    @cached_property
    def recv(self) -> int:
        """Start of the all-reduce receive slots; also the bytes a pulling transport uses."""
        return self.send_chunk + 2 * (self.world - 1) * self.chunk_stride

    @cached_property
    def recv_gather(self) -> int:
        """Start of the all-gather receive slots."""
        return self.recv + (self.world - 1) * 2 * self.slot_stride

    @cached_property
    def recv_chunk(self) -> int:
        """Start of the chunk receive slots."""
        return self.recv_gather + (self.world - 1) * 2 * self.gather_stride

    @cached_property
    def total(self) -> int:
        """Bytes of one region."""
        return self.recv_chunk + (self.world - 1) * 2 * self.chunk_stride

    def row(self, owner: int, source: int) -> int:
        """Return the row of `source` in the region of `owner`, which has no row of its own."""
        if source == owner or not (0 <= owner < self.world and 0 <= source < self.world):
            raise ValueError(f"rank {owner} of {self.world} has no row for rank {source}")
        return source if source < owner else source - 1

    def record_at(self, source: int) -> int:
        """Return the failure record that `source` writes."""
        return RECORDS + source * RECORD

    def status_at(self, source: int) -> int:
        """Return the status line that `source` writes."""
        return self.status + source * LINE

    def flag_at(self, owner: int, source: int, parity: int, stripe: int) -> int:
        """Return the flag of one stripe in the region of `owner`."""
        if not 0 <= stripe < self.lanes:
            raise ValueError(f"stripe {stripe}: the group has {self.lanes} lanes")
        slot = self.row(owner, source) * 2 + (parity & 1)
        return self.flags + (slot * self.lanes + stripe) * LINE

    def recv_at(self, owner: int, source: int, parity: int) -> int:
        """Return the all-reduce receive slot of `source` in the region of `owner`."""
        return self.recv + (self.row(owner, source) * 2 + (parity & 1)) * self.slot_stride

    def recv_gather_at(self, owner: int, source: int, parity: int) -> int:
        """Return the all-gather receive slot of `source` in the region of `owner`."""
        slot = self.row(owner, source) * 2 + (parity & 1)
        return self.recv_gather + slot * self.gather_stride

    def send_chunk_at(self, owner: int, peer: int, parity: int) -> int:
        """Return the slot in the region of `owner` that holds its chunk for `peer`."""
        slot = (parity & 1) * (self.world - 1) + self.row(owner, peer)
        return self.send_chunk + slot * self.chunk_stride

    def recv_chunk_at(self, owner: int, source: int, parity: int) -> int:
        """Return the chunk receive slot of `source` in the region of `owner`."""
        slot = self.row(owner, source) * 2 + (parity & 1)
        return self.recv_chunk + slot * self.chunk_stride
