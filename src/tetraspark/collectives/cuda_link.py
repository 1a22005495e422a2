"""One rank's end of an open group of kernels."""

from dataclasses import dataclass

import torch

from tetraspark.collectives.cuda_driver import MappedHost
from tetraspark.collectives.cuda_endpoint import CudaEndpoint
from tetraspark.collectives.cuda_launch import Launcher
from tetraspark.collectives.opening import Link


@dataclass(frozen=True)
class CudaLink:
    """An open, proven group of kernels as one rank holds it."""

    link: Link
    launcher: Launcher
    endpoint: CudaEndpoint
    device: torch.device
    pinned: tuple[MappedHost, ...]

    def release(self) -> None:
        """Unload the kernels and unpin the regions. Nothing may be running."""
        self.launcher.close()
        for memory in self.pinned:
            memory.close()
