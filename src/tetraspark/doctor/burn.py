"""A burn: what a GPU does under load. Planned as a command, read from its output.

It finds a clock that stays low until the node loses its power, which nothing else shows before a
slow line does. The bounds come from reports of Sparks; it has not run on one here.
"""

import json
import math
from dataclasses import dataclass
from importlib.resources import files

from tetraspark.fleet.command import NodeCommand, Result
from tetraspark.site.machines import Image

SECONDS = 10
TIMEOUT = 180.0
"""Seconds for the start of the container, the import of torch and the burn."""


@dataclass(frozen=True)
class Burn:
    """TFLOPS of fp16 products, the SM clock in MHz and the power in W; None where not told."""

    tflops: float
    sm_mhz: float | None
    watts: float | None

    def __str__(self) -> str:
        clock = "clock not told" if self.sm_mhz is None else f"SM at {self.sm_mhz:.0f} MHz"
        power = "power not told" if self.watts is None else f"{self.watts:.0f} W"
        return f"{self.tflops:.1f} TFLOPS, {clock}, {power}"


def burn_command(image: Image, line: str) -> NodeCommand:
    """Return what loads a GPU: one container of the line's image, removed at its end."""
    program = files("tetraspark.doctor.inside").joinpath("burn.py").read_bytes()
    argv = (
        *("docker", "run", "--rm", "--interactive", "--gpus=all", "--network=none"),
        *("--pull=never", f"--name=tetraspark-{line}-burn", "--entrypoint=python3"),
        *(image.tag, "-", str(SECONDS)),
    )
    return NodeCommand(argv, stdin=program, timeout=TIMEOUT)


def read_burn(result: Result) -> Burn | str:
    """Return what the program printed last, or why there is nothing."""
    lines = result.stdout.strip().splitlines()
    try:
        found = json.loads(lines[-1] if result.rc == 0 and lines else "")
        rate = float(found["tflops"])
        clocks = [_number(word) for word in found["clocks"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        last = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
        return f"ended with {result.rc}: {last[:200]}"
    if not math.isfinite(rate) or rate <= 0:
        return f"said {rate} TFLOPS"
    mhz, watts = clocks if len(clocks) == 2 else (None, None)
    return Burn(rate, mhz, watts)


def _number(word: object) -> float | None:
    try:
        return float(str(word))
    except ValueError:
        return None
