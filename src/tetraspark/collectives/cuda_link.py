"""One rank's end of an open group of kernels."""

from contextlib import ExitStack
from dataclasses import dataclass

import torch

from tetraspark.collectives.cuda_endpoint import CudaEndpoint
from tetraspark.collectives.cuda_launch import Launcher
from tetraspark.collectives.opening import Link
from tetraspark.collectives.relay import Relay


@dataclass(frozen=True)
class CudaLink:
    """An open, proven group of kernels as one rank holds it.

    `relay` posts what the kernels stage; None where they reach peers' regions themselves.
    """

    link: Link
    launcher: Launcher
    endpoint: CudaEndpoint
    device: torch.device
    relay: Relay | None
    held: ExitStack

    def release(self) -> None:
        """End the relay, unload the kernels and unpin the regions. Nothing may be running."""
        self.held.close()
