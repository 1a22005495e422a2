"""Load this machine's GPU with fp16 matrix products for some seconds; print one JSON object.

Runs in a container of the line's image with `python3 - SECONDS`, from stdin: it needs torch and
imports nothing of the package. 2 * SIZE**3 floating-point operations a product.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

SIZE = 8192
BATCH = 10
FIELDS = "clocks.sm,power.draw"


def product_rate(seconds: float) -> tuple[float, list[str]]:
    """Return TFLOPS (10**12 operations a second), and what nvidia-smi said in the middle."""
    import torch

    left, right = (torch.randn(SIZE, SIZE, dtype=torch.float16, device="cuda") for _ in range(2))
    out = torch.empty_like(left)
    torch.matmul(left, right, out=out)
    torch.cuda.synchronize()
    seen: list[str] = []
    begun, done = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        for _ in range(BATCH):
            torch.matmul(left, right, out=out)
        if not seen and time.monotonic() - begun > seconds / 2:
            seen = clocks()
        torch.cuda.synchronize()
        done += BATCH
    return done * 2 * SIZE**3 / (time.monotonic() - begun) / 1e12, seen


def clocks() -> list[str]:
    """Return the SM clock and the power as nvidia-smi prints them; empty where it does not."""
    argv = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [word.strip() for word in done.stdout.split("\n", 1)[0].split(",")]


if __name__ == "__main__":
    rate, words = product_rate(float(sys.argv[1]))
    print(json.dumps({"tflops": rate, "clocks": words}))
