"""Compiles the kernels of every shape that the checks use, side by side, into the cache.

Run: `python tests/gpu/images.py`. Prints one JSON line a shape.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tetraspark.collectives.cuda_images import image
from tetraspark.collectives.cuda_source import Shape, kernel_source

WORLDS = range(2, 9)


def compiled(world: int, capability: int) -> dict[str, object]:
    """Compile one shape, or find it; returns what it is and how long it took."""
    start = time.monotonic()
    size = len(image(kernel_source(Shape.usual(world)), capability))
    return {"image": world, "bytes": size, "s": round(time.monotonic() - start, 1)}


def main() -> int:
    """Compile all; returns the exit code."""
    import torch

    if not torch.cuda.is_available():
        print("FAIL no CUDA device: torch sees none")
        return 1
    major, minor = torch.cuda.get_device_capability()
    with ProcessPoolExecutor(len(WORLDS), get_context("spawn")) as pool:
        jobs = [pool.submit(compiled, world, major * 10 + minor) for world in WORLDS]
        for job in jobs:
            print(json.dumps(job.result()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
