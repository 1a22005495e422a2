"""Launches operations of one rank: the device's epoch, the kernels, and the grid of each size."""

import math
from dataclasses import dataclass

import torch

from tetraspark.collectives import native
from tetraspark.collectives.cuda_driver import Module, PinnedStructure, capability
from tetraspark.collectives.cuda_images import image
from tetraspark.collectives.cuda_source import (
    EXCHANGE,
    REDUCERS,
    WIDTHS,
    Shape,
    gatherer,
    kernel_names,
    kernel_source,
    reducer,
)
from tetraspark.collectives.cuda_state import DeviceArguments, DeviceState, Report
from tetraspark.collectives.flags import Dtype, Op

SPLIT_BYTES = 64 << 10
"""Times stripes squared, the size from which a split launch was measured faster.

Its stripes are published one after the other, which costs more the more there are; a launch with
a block a stripe has the more blocks.
"""
STAGING_BLOCKS = 2
REDUCING_BLOCKS = 8
"""Blocks of a split launch, beside the one that polls; more gained nothing over PCIe."""


@dataclass(frozen=True)
class Form:
    """How an operation is spread over blocks; no peer sees it. `stagers` 0: a block a stripe."""

    stagers: int = 0
    reducers: int = 0

    def grid(self, stripes: int) -> tuple[int, int]:
        """Return the grid of a launch."""
        return (self.stagers + 1 + self.reducers, 1) if self.stagers else (1, stripes)


def form_of(nbytes: int, stripes: int) -> Form:
    """Return the form for an operation whose largest shard has `nbytes`."""
    return Form(STAGING_BLOCKS, REDUCING_BLOCKS) if nbytes >= SPLIT_BYTES * stripes**2 else Form()


def access_width(request: native.Request, world: int) -> int:
    """Return the widest access, 16 bytes or less, that divides all of a gather's places."""
    places = [request.input or 0, request.output or 0, request.out_stride]
    for rank in range(world):
        places += [request.row_bytes[rank], request.out_offset[rank]]
    common = math.gcd(*places)
    return next(width for width in WIDTHS if common % width == 0)


def kernel_name(request: native.Request, world: int) -> str:
    """Return the kernel of an operation."""
    op = Op(request.op)
    if op in REDUCERS:
        return reducer(op, Dtype(request.dtype))
    return EXCHANGE if op is Op.PROBE_CHUNK else gatherer(access_width(request, world))


class Launcher:
    """Kernels and device state of one rank. `config.base` holds device addresses.

    All launches must be ordered, on one stream or by events: two slots are enough only then.
    """

    def __init__(
        self,
        config: native.Config,
        device: torch.device,
        start_sequence: int,
        deadline_s: float,
        shape: Shape | None = None,
    ) -> None:
        self.shape = shape or Shape.usual(config.world)
        self._config = config
        with torch.cuda.device(device):
            torch.cuda.current_stream()
            code = image(kernel_source(self.shape), capability(device))
            self._module = Module(code, kernel_names())
            self._report = PinnedStructure(Report)
            first = DeviceState(sequence=start_sequence)
            self._state = torch.frombuffer(bytearray(bytes(first)), dtype=torch.uint8).to(device)
        self._device = DeviceArguments(
            state=self._state.data_ptr(),
            report=self._report.device,
            deadline_ns=int(deadline_s * 1e9),
        )

    @property
    def report(self) -> Report:
        """Why the group was poisoned, once `valid` is set."""
        return self._report.value

    def device_state(self) -> DeviceState:
        """Read the device's epoch and poison; waits for the device, so not while one may hang."""
        return DeviceState.from_buffer_copy(bytes(self._state.cpu().numpy().tobytes()))

    def launch(self, request: native.Request, stream: int, form: Form | None = None) -> None:
        """Enqueue one operation, eager or in a capture; `form` None chooses by size."""
        config = self._config
        form = form or form_of(max(request.bytes[: config.world]), config.lanes)
        self._device.stagers = form.stagers
        name, arguments = kernel_name(request, config.world), (config, request, self._device)
        self._module.launch(name, form.grid(config.lanes), self.shape.threads, stream, arguments)

    def close(self) -> None:
        """Unload and free. Nothing may be running."""
        self._module.close()
        self._report.close()
