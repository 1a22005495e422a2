"""The kernels of one rank, run on its CPU, behind a relay and real queue pairs. Inside the VM."""

import ctypes
import os
from ctypes import addressof
from pathlib import Path
from typing import Any

import torch

from tests.collectives.cuda_emulator import CALLBACK, Launch, launch
from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_endpoint import CudaEndpoint
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_opening import device_config
from tetraspark.collectives.cuda_requests import Requests
from tetraspark.collectives.cuda_state import DeviceArguments, DeviceState, Report
from tetraspark.collectives.cuda_two_shot import gather_of
from tetraspark.collectives.flags import next_sequence
from tetraspark.collectives.group import Group
from tetraspark.collectives.relay import Relay

LIBRARY = Path(__file__).parents[2] / ".pytest_cache" / "kernels-4.so"
"""Built on the host, found in the VM: a C++ compiler under emulation takes minutes."""
NEVER = 1 << 62
FORMS = (Form(), Form(2, 3))


class Kernels:
    """Takes a group over, as a group of kernels does once it has opened."""

    def __init__(self, group: Group) -> None:
        link = group._link
        own = int(link.endpoint.state.config.base[link.rank])
        bases = [own if rank == link.rank else 0 for rank in range(link.layout.world)]
        self._link = link
        self._config = device_config(link, bases)
        self._state = DeviceState(sequence=link.endpoint.sequence)
        self._report = Report()
        self._device = DeviceArguments(
            state=addressof(self._state), report=addressof(self._report), deadline_ns=NEVER
        )
        self._requests = Requests(link.layout, link.rank, torch.device("cpu"))
        endpoint = CudaEndpoint(link.endpoint, link.layout, self._report)
        link.transport.attach(endpoint)
        self.relay = Relay(endpoint, spin_s=0.0)
        self.relay.start()
        self._library = ctypes.CDLL(str(LIBRARY))

    def reduce(self, tensor: torch.Tensor, algorithm: Algorithm, form: Form) -> torch.Tensor:
        """Sum in place over the ranks."""
        request, _, result = self._requests.reduce(tensor, tensor, algorithm)
        two = algorithm is Algorithm.TWO_SHOT
        self._run(form, request, *([gather_of(request, self._link.rank)] if two else []))
        return result

    def scatter(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return this rank's part of the sum."""
        request, _, result = self._requests.scatter(tensor, 0)
        self._run(Form(), request)
        return result

    def gather(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """Return every rank's shard."""
        request, _, result = self._requests.gather(tensor, dim, None)
        self._run(Form(), request)
        return result

    def _run(self, form: Form, *requests: native.Request) -> None:
        made = [launch(self._library, self._config, one, self._device, form) for one in requests]
        flat: Any = (Launch * len(made))(*made)
        # Gives the core away after each turn: four ranks share two.
        self._library.run_ranks(flat, 1, len(made), 1, 1 << 30, CALLBACK(os.sched_yield))
        expected = self._link.endpoint.sequence
        assert (self._report.valid, self._state.sequence) == (0, expected)

    def close(self) -> None:
        """End the relay."""
        self.relay.close()


def run(group: Group, seed: int, shape: tuple[int, ...]) -> dict[str, Any]:
    """Reduce, scatter and gather by kernels; return the bytes and what the relay counted."""
    from tests.collectives.oracle import raw, shard

    kernels = Kernels(group)
    first = next_sequence(group._link.endpoint.sequence)
    tensor = shard(seed, group.rank, shape)
    try:
        sums = [
            raw(kernels.reduce(tensor.clone(), algorithm, form))
            for algorithm in Algorithm
            for form in FORMS
        ]
        part, parts = raw(kernels.scatter(tensor)), raw(kernels.gather(tensor, -1))
        counts = kernels.relay.counts()
        done = group._link.endpoint.sequence - first + 1
        return {"sums": sums, "part": part, "parts": parts, "relay": counts, "operations": done}
    finally:
        kernels.close()
