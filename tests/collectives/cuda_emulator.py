"""Runs the kernels' own source on the CPU: W ranks, their regions, launches in any interleaving."""

import ctypes
import mmap
import re
import subprocess
from ctypes import Structure, addressof, c_char, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

import torch

from tests.collectives.cuda_host import find_cxx
from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_launch import Form, kernel_name
from tetraspark.collectives.cuda_requests import Requests
from tetraspark.collectives.cuda_source import Shape, kernel_source
from tetraspark.collectives.cuda_state import DeviceArguments, DeviceState, Report
from tetraspark.collectives.cuda_two_shot import gather_of
from tetraspark.collectives.endpoint import Endpoint, configure
from tetraspark.collectives.layout import ABORT, Layout
from tetraspark.collectives.relay import Relay
from tetraspark.collectives.routes import Routes

HERE = Path(__file__).parent
CPU = torch.device("cpu")
THREADS = 128
TURNS = 20000
BF16 = torch.bfloat16
SPLIT = Form(2, 3)
SIZES = (16, 48, 4112, 20000 * 2 - 64)
Way = Literal["pull", "push", "queued"]
CALLBACK = ctypes.CFUNCTYPE(None)


class Launch(Structure):
    """One kernel of one rank; a null kernel is a rank that stays away."""

    _fields_ = (
        ("kernel", c_void_p),
        ("grid_x", c_uint32),
        ("grid_y", c_uint32),
        ("config", native.Config),
        ("request", native.Request),
        ("device", DeviceArguments),
    )


def build_emulator(world: int, folder: Path) -> Path:
    """Compile the kernels of one shape as C++; returns the library."""
    source = kernel_source(Shape(world, THREADS, 2), ptx=HERE / "cuda_words.cpp")
    source = re.sub(r"__shared__ (\w+) (\w+);", r"\1 &\2 = shared_memory<\1>();", source)
    # Fewer polls between looks at the clock and the abort word: a poll is dear here.
    source = source.replace("#define TS_POLLS 1024u", "#define TS_POLLS 16u")
    file = folder / f"kernels-{world}.cpp"
    parts = (HERE / "cuda_fibers.cpp", HERE / "cuda_run.cpp")
    file.write_text(parts[0].read_text() + source + parts[1].read_text())
    library = file.with_suffix(".so")
    # No contraction: a sum here must have the bits of the GPU's.
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
    subprocess.run([find_cxx(), *flags, "-o", str(library), str(file)], check=True)
    return library


@cache
def emulator(world: int, folder: Path) -> ctypes.CDLL:
    """Return the kernels of one shape as a library, loaded."""
    return ctypes.CDLL(str(build_emulator(world, folder)))


def launch(
    library: ctypes.CDLL,
    config: native.Config,
    request: native.Request,
    device: DeviceArguments,
    form: Form,
) -> Launch:
    """Return a launch as the product's launcher would make it."""
    device.stagers = form.stagers
    kernel = ctypes.cast(getattr(library, kernel_name(request, config.world)), c_void_p)
    return Launch(kernel, *form.grid(config.lanes), config, request, device)


class Emulated:
    """W ranks with regions, device state and reports of their own; queued: and with relays."""

    def __init__(
        self,
        library: ctypes.CDLL,
        world: int,
        lanes: int,
        way: Way,
        sequence: int = 0,
    ) -> None:
        self.world, self.lanes = world, lanes
        self.layout = Layout(world, lanes, 1 << 16, 1 << 15, 1 << 17)
        self._library = library
        self._memory = [mmap.mmap(-1, self.layout.total) for _ in range(world)]
        bases = [addressof(c_char.from_buffer(memory)) for memory in self._memory]
        self.bases = bases
        self.states = [DeviceState(sequence=sequence) for _ in range(world)]
        self.reports = [Report() for _ in range(world)]
        self.requests = [Requests(self.layout, rank, CPU) for rank in range(world)]
        self._configs = [
            configure(
                self.layout, Routes.uniform(world, lanes), rank, bases,
                direct=way != "queued", pull=way == "pull", start_sequence=sequence,
                spins=0, yields=0,
            )
            for rank in range(world)
        ]  # fmt: skip

        self.endpoints = [Endpoint(self.layout, config) for config in self._configs]
        self.relays = [self._relay(one) for one in self.endpoints] if way == "queued" else []

    @staticmethod
    def _relay(endpoint: Endpoint) -> Relay:
        """Open a relay that steps only when it is told; all regions are mapped here."""
        endpoint.copy_queued()
        return Relay(endpoint)

    def launch(self, rank: int, request: native.Request, form: Form | None = None) -> Launch:
        """Return a launch of a rank."""
        device = DeviceArguments(
            state=addressof(self.states[rank]),
            report=addressof(self.reports[rank]),
            deadline_ns=5000,
        )
        return launch(self._library, self._configs[rank], request, device, form or Form())

    def abort(self, rank: int) -> None:
        """Raise the abort word of a rank."""
        self._memory[rank][ABORT : ABORT + 8] = (1).to_bytes(8, "little")

    def run(self, launches: list[list[Launch]], seed: int = 1) -> None:
        """Run every rank's launches; raises TimeoutError if they do not end."""
        count = max(len(one) for one in launches)
        flat: Any = (Launch * (count * self.world))()
        for rank, own in enumerate(launches):
            for i, one in enumerate(own):
                flat[rank * count + i] = one
        random = Random(seed)
        step = CALLBACK(lambda: self._step(random)) if self.relays else CALLBACK()
        left = self._library.run_ranks(flat, self.world, count, seed, TURNS, step)
        if left:
            raise TimeoutError(f"{left} ranks had not ended after {TURNS} turns")

    def _step(self, random: Random) -> None:
        """Let some relays look, so that each is now early and now late."""
        for relay in self.relays:
            if random.random() < 0.3:
                relay.step()


def reduction(
    ranks: Emulated, inputs: list[torch.Tensor], form: Form, algorithm: Algorithm
) -> tuple[list[list[Launch]], list[torch.Tensor]]:
    """Return every rank's launches of one all-reduce in place, and the tensors they fill."""
    made, outs = [], []
    for rank, tensor in enumerate(inputs):
        out = tensor.clone()
        request, _, _ = ranks.requests[rank].reduce(out, out, algorithm)
        launches = [ranks.launch(rank, request, form)]
        if algorithm is Algorithm.TWO_SHOT:
            launches.append(ranks.launch(rank, gather_of(request, rank), form))
        made.append(launches)
        outs.append(out)
    return made, outs
