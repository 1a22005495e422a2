"""The text given to the compiler: the layout's numbers, then the source files."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from tetraspark.collectives import cuda_state, native
from tetraspark.collectives.flags import MAX_UNITS, REDUCIBLE, UNIT, Dtype, Flag, Op
from tetraspark.collectives.layout import LINE
from tetraspark.collectives.native import Header, Progress
from tetraspark.collectives.routes import MAX_LANES, MAX_WORLD

PROTOCOL = Path(__file__).with_name("cuda_protocol.cu")
PTX = Path(__file__).with_name("cuda_ptx.cu")
KERNELS = Path(__file__).with_name("cuda_kernels.cu")


@dataclass(frozen=True)
class Shape:
    """What is fixed when kernels are compiled: ranks, threads a block, 16-byte loads in flight.

    Only `world` must be equal on every rank.
    """

    world: int
    threads: int = 512
    unroll: int = 4

    def __post_init__(self) -> None:
        if not 2 <= self.world <= MAX_WORLD:
            raise ValueError(f"world {self.world} is outside 2..{MAX_WORLD}")
        if self.threads % 32 or not 32 * MAX_LANES <= self.threads <= 1024:
            raise ValueError(f"{self.threads} threads: wanted a multiple of 32 from 128 to 1024")
        if not 1 <= self.unroll <= 8:
            raise ValueError(f"unroll {self.unroll}: wanted 1..8")

    @classmethod
    def usual(cls, world: int) -> "Shape":
        """Return the measured choice: about eight 16-byte loads a thread in flight."""
        return cls(world, 512, 4 if world == 2 else (2 if world <= 4 else 1))


def _shift(**one: int) -> int:
    """Return the bit at which a field of the flag starts, from the packing itself."""
    fields = {"sequence": 0, "op": 0, "dtype": 0, "units": 0} | one
    return Flag(**fields).pack().bit_length() - 1


def constants() -> dict[str, int]:
    """Return every number that the source takes from the layout, the flags and the proxy."""
    ops = {f"TS_{op.name}": int(op) for op in Op}
    sizes = {
        "CONFIG": native.Config,
        "REQUEST": native.Request,
        "STATE": cuda_state.DeviceState,
        "REPORT": cuda_state.Report,
        "DEVICE": cuda_state.DeviceArguments,
    }
    return {
        "TS_LINE": LINE,
        "TS_UNIT": UNIT,
        "TS_MAX_UNITS": MAX_UNITS,
        "TS_MAX_WORLD": MAX_WORLD,
        "TS_MAX_LANES": MAX_LANES,
        "TS_MAX_DIMS": native.MAX_DIMS,
        "TS_SEQUENCE_SHIFT": _shift(sequence=1),
        "TS_OP_SHIFT": _shift(op=1),
        "TS_DTYPE_SHIFT": _shift(dtype=1),
        "TS_DOORBELL": Progress.doorbell.offset,
        "TS_POSTED": Progress.posted.offset,
        "TS_COMPLETED": Progress.completed.offset,
        "TS_ACKED": Progress.acked.offset,
        "TS_MARK_UNITS": native.MARK_UNITS,
        "TS_DIGEST": Header.digest.offset,
        "TS_MISMATCH": native.MISMATCH,
        "TS_DIVERGED": native.DIVERGED,
        "TS_STALE_HEADER": native.STALE_HEADER,
        "TS_DEADLINE": cuda_state.DEADLINE,
        "TS_ABORTED": cuda_state.ABORTED,
        "TS_PENDING": cuda_state.PENDING,
        **ops,
        **{f"TS_SIZEOF_{name}": ctypes.sizeof(kind) for name, kind in sizes.items()},
    }


def prologue() -> str:
    """Return the definitions that both source files need."""
    return "".join(f"#define {name} {value}u\n" for name, value in constants().items())


def protocol_source() -> str:
    """Return the part that a host compiler builds too."""
    return prologue() + PROTOCOL.read_text()


def kernel_source(shape: Shape, ptx: Path = PTX) -> str:
    """Return the whole source for one shape; `ptx` may be a stand-in for the machine's words."""
    fixed = f"#define TS_WORLD {shape.world}u\n#define TS_THREADS {shape.threads}u\n"
    fixed += f"#define TS_UNROLL {shape.unroll}u\n"
    return fixed + protocol_source() + ptx.read_text() + KERNELS.read_text()


REDUCERS = {
    Op.ALL_REDUCE: "ts_all_reduce",
    Op.TWO_SHOT_REDUCE: "ts_reduce_scatter",
    Op.REDUCE_SCATTER_FIRST: "ts_reduce_scatter",
    Op.REDUCE_SCATTER_LAST: "ts_reduce_scatter",
}
"""Operations that sum, one kernel a dtype."""
EXCHANGE = "ts_exchange_chunks_16"
WIDTHS = (16, 8, 4, 2, 1)
"""Bytes of one access of a gather, widest first."""


def reducer(op: Op, dtype: Dtype) -> str:
    """Return the name of the kernel that sums."""
    return f"{REDUCERS[op]}_{dtype.name.lower()}"


def gatherer(width: int) -> str:
    """Return the name of the gather kernel with accesses of `width` bytes."""
    return f"ts_all_gather_{width}"


def kernel_names() -> tuple[str, ...]:
    """Return every kernel of the source."""
    sums = dict.fromkeys(reducer(op, dtype) for op in REDUCERS for dtype in sorted(REDUCIBLE))
    gathers = (gatherer(width) for width in WIDTHS)
    return (*sums, EXCHANGE, *gathers)
