"""What a CUDA group keeps outside the regions: its epoch on the device, its report on the host."""

from ctypes import Structure, c_uint32, c_uint64

from tetraspark.collectives.routes import MAX_LANES

DEADLINE = 16
"""Kind of a report: the device's own clock ended the wait."""
ABORTED = 17
"""Kind of a report: the abort word ended the wait."""
PENDING = 255
"""Judgement of a flag that has not arrived; never in a report."""


class DeviceState(Structure):
    """The epoch and the counters in device memory; zeroed by the host but for `sequence`."""

    _fields_ = (
        ("sequence", c_uint32),
        ("poison", c_uint32),
        ("tail", c_uint32),
        ("reserved", c_uint32),
        ("staged", c_uint32 * MAX_LANES),
        ("published", c_uint32 * MAX_LANES),
        ("arrived", c_uint32 * MAX_LANES),
    )


class Report(Structure):
    """Why a kernel poisoned the group; written once, `valid` last. `waited_ns` is GPU time."""

    _fields_ = (
        ("valid", c_uint32),
        ("kind", c_uint32),
        ("peer", c_uint32),
        ("stripe", c_uint32),
        ("sequence", c_uint32),
        ("reserved", c_uint32),
        ("mine", c_uint64),
        ("theirs", c_uint64),
        ("waited_ns", c_uint64),
    )


class DeviceArguments(Structure):
    """Third argument of every kernel: device addresses, the wait's last resort, the launch's form.

    `stagers` 0: a block a stripe; else the blocks that stage, before one that polls.
    """

    _fields_ = (
        ("state", c_uint64),
        ("report", c_uint64),
        ("deadline_ns", c_uint64),
        ("stagers", c_uint32),
        ("reserved", c_uint32),
    )
