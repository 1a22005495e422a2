"""Before "ready": a pattern through every slot over every lane, with a nonce of this group."""

import ctypes
import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from itertools import accumulate

from tetraspark.collectives import native
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.flags import UNIT, Op
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.requests import probe_request
from tetraspark.collectives.routes import stripe_units
from tetraspark.collectives.supervisor import Supervisor

ROUNDS = (Op.PROBE, Op.PROBE, Op.PROBE_GATHER, Op.PROBE_GATHER)
"""Two successive sequences an area fill both of its slots."""

CHUNK_ROUNDS = (Op.PROBE_CHUNK, Op.PROBE_CHUNK)
"""The same for the area of chunks, where there is one."""


@dataclass(frozen=True)
class Probe:
    """One probe: the bytes from each rank to each, which differ by the receiver for chunks."""

    op: Op
    nbytes: int
    world: int
    nonce: bytes
    sequence: int

    def part(self, source: int, target: int) -> bytes:
        """Return what `source` sends to `target`."""
        own = bytes([target]) if self.op is Op.PROBE_CHUNK else b""
        return pattern(self.nonce + own, source, self.sequence, self.nbytes)

    def sent(self, rank: int) -> bytes:
        """Return the input of a rank."""
        if self.op is not Op.PROBE_CHUNK:
            return self.part(rank, rank)
        return b"".join(self.part(rank, target) for target in range(self.world))


def pattern(nonce: bytes, rank: int, sequence: int, nbytes: int) -> bytes:
    """Return what a rank sends in one probe: no two ranks, groups or sequences share it."""
    seed = nonce + rank.to_bytes(4, "little") + sequence.to_bytes(4, "little")
    return hashlib.shake_128(seed).digest(nbytes)


def first_difference(seen: bytes, wanted: bytes) -> int:
    """Return the position of the first byte that differs."""
    return next(
        at for at, (one, other) in enumerate(zip(seen, wanted, strict=True)) if one != other
    )


def lane_of(byte: int, nbytes: int, lanes: tuple[int, ...]) -> int:
    """Return the lane that carries one byte of a payload."""
    ends = accumulate(stripe_units(nbytes // UNIT, len(lanes)))
    return next(lane for lane, end in zip(lanes, ends, strict=True) if byte < end * UNIT)


def prove(
    endpoint: Endpoint, supervisor: Supervisor, layout: Layout, rank: int, nonce: bytes
) -> Generator[None, None, str]:
    """Run the probes, yielding while one waits; return "" or what was wrong.

    Raises CollectiveError if a peer never answers.
    """
    reason = ""
    sizes = {
        Op.PROBE: layout.reduce_bytes,
        Op.PROBE_GATHER: layout.gather_bytes,
        Op.PROBE_CHUNK: layout.chunk_bytes,
    }
    for op in ROUNDS + (CHUNK_ROUNDS if layout.two_shot_bytes else ()):
        nbytes = sizes[op]
        request = probe_request(op, layout.world, nbytes)
        probe = Probe(op, nbytes, layout.world, nonce, endpoint.next_sequence())
        sent = probe.sent(rank)
        result = ctypes.create_string_buffer(layout.world * nbytes)
        request.input = ctypes.cast(ctypes.c_char_p(sent), ctypes.c_void_p)
        request.output = ctypes.cast(result, ctypes.c_void_p)
        state = endpoint.begin(request)
        while state != native.DONE:
            supervisor.step(state)
            yield
            if not supervisor.settling:
                state = endpoint.poll()
        for source in range(layout.world):
            seen = result.raw[source * nbytes : (source + 1) * nbytes]
            wanted = probe.part(source, rank)
            # Noted, and the rounds go on: a rank that left would keep its peers waiting.
            if seen != wanted and not reason:
                lanes = endpoint.lanes_to(source) or (0,)
                lane = lane_of(first_difference(seen, wanted), nbytes, lanes)
                reason = f"the pattern of rank {source} arrived damaged on lane {lane} ({op.name})"
    return reason
