"""What this machine is, as far as it decides how fast its processes are."""

import os
import platform
from pathlib import Path


def machine() -> str:
    """Return the architecture, the processor and the kernel, in words."""
    return f"{platform.machine()}, {_processor()}, {platform.system()} {platform.release()}"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _processor() -> str:
    """Return the processor's name as the kernel gives it; not every machine has one."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "processor not named"
