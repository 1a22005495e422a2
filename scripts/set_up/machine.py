"""What a machine must have before anything is installed."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.set_up.step import SetupError

OLDEST_PYTHON = (3, 11)
OLDEST_GLIBC = (2, 34)
FREE_BYTES_WANTED = 4 * 10**9


def check_machine(venv: Path) -> None:
    """Refuse a machine that cannot hold the environment, naming the package to install."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(
            "{} is Python {}.{}, wanted 3.11 or newer; install one (apt-get install python3.11), "
            "then: make PYTHON=python3.11 serve".format(sys.executable, *sys.version_info[:2])
        )
    if sys.platform != "linux":
        raise SetupError(f"this is {sys.platform}, wanted linux: the engine has no wheel for it")
    check_libc(*platform.libc_ver())
    missing = [package for package, present in system_packages().items() if not present]
    if missing:
        raise SetupError(
            f"system packages missing: {' '.join(missing)}; "
            f"type: sudo apt-get install {' '.join(missing)}"
        )
    venv.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(venv.parent).free
    if free < FREE_BYTES_WANTED:
        raise SetupError(
            f"{venv.parent}: {free / 1e9:.1f} GB free, wanted {FREE_BYTES_WANTED / 1e9:.0f} GB; "
            "free some, or name another place: make VENV=/path/to/venv serve"
        )


def check_libc(name: str, version: str) -> None:
    """Refuse a C library for which the pinned wheels are not built."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if name != "glibc" or numbers < OLDEST_GLIBC:
        raise SetupError(
            "the C library is {}, wanted glibc {}.{} or newer: the pinned wheels need it; use "
            "a newer release of this system".format(
                f"{name} {version}" if name else "not glibc", *OLDEST_GLIBC
            )
        )


def system_packages() -> dict[str, bool]:
    """Return the Debian packages that are needed, and whether each one is there."""
    probe = [sys.executable, "-c", "import ensurepip, venv"]
    has_venv = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    return {
        "python3-venv": has_venv,
        "gcc": any(shutil.which(name) for name in ("cc", "gcc", "clang")),
        "util-linux": shutil.which("setsid") is not None,
    }
