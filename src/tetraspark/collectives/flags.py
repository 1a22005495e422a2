"""The 64-bit flag that follows every stripe, and the sequence it carries.

Bits, from the top: sequence (32), operation (4), dtype (4), size in 16-byte units (24, so up to
256 MiB). A receiver knows the flag it expects; anything else with its sequence is a mismatch.
"""

from dataclasses import dataclass
from enum import IntEnum

UNIT = 16
MAX_UNITS = (1 << 24) - 1
MAX_SEQUENCE = (1 << 32) - 1


class Op(IntEnum):
    """Operation of a flag. The probes prove the slots of each area.

    A two-shot all-reduce is two operations on the wire, each with a sequence of its own.
    """

    ALL_REDUCE = 1
    GATHER_FIRST = 2
    GATHER_LAST = 3
    PROBE = 4
    PROBE_GATHER = 5
    REDUCE_SCATTER_FIRST = 6
    REDUCE_SCATTER_LAST = 7
    TWO_SHOT_REDUCE = 8
    TWO_SHOT_GATHER = 9
    PROBE_CHUNK = 10


class Dtype(IntEnum):
    """Element type of a flag; the first three can be reduced."""

    BF16 = 1
    FP16 = 2
    FP32 = 3
    FP64 = 4
    INT8 = 5
    UINT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    BOOL = 10
    FP8_E4M3 = 11
    FP8_E5M2 = 12


REDUCIBLE = frozenset({Dtype.BF16, Dtype.FP16, Dtype.FP32})


@dataclass(frozen=True)
class Flag:
    """One flag, taken apart. `units` is the shard's size in 16-byte units, rounded up."""

    sequence: int
    op: int
    dtype: int
    units: int

    def __post_init__(self) -> None:
        for name, top in (
            ("sequence", MAX_SEQUENCE),
            ("op", 15),
            ("dtype", 15),
            ("units", MAX_UNITS),
        ):
            if not 0 <= getattr(self, name) <= top:
                raise ValueError(f"{name} {getattr(self, name)} is outside 0..{top}")

    def pack(self) -> int:
        """Return the 64-bit word."""
        return self.sequence << 32 | self.op << 28 | self.dtype << 24 | self.units

    @classmethod
    def unpack(cls, word: int) -> "Flag":
        """Take a 64-bit word apart."""
        return cls(word >> 32, word >> 28 & 15, word >> 24 & 15, word & MAX_UNITS)

    def describe(self, shape: tuple[int, ...] | None) -> str:
        """Name the operation for an error; `shape` is the sender's, where it is known."""
        op = Op(self.op).name.lower() if self.op in list(Op) else f"operation {self.op}"
        dtype = Dtype(self.dtype).name.lower() if self.dtype in list(Dtype) else f"{self.dtype}"
        of = f" {list(shape)}" if shape is not None else ""
        return f"{op} {dtype}{of} of {self.units * UNIT} bytes"


def units_of(nbytes: int) -> int:
    """Return the 16-byte units that hold `nbytes`."""
    return -(-nbytes // UNIT)


def next_sequence(sequence: int) -> int:
    """Return the sequence after this one.

    After 2**32-1 comes 2: 0 means "nothing yet", and 1 has the parity of 2**32-1, so it would
    overwrite a slot that a peer may still be reading.
    """
    return 2 if sequence == MAX_SEQUENCE else sequence + 1
