"""An interpreter in which the real engine imports on a machine without a GPU."""

import os
import subprocess
import sys

from tetraspark.engine.standins import MODULES, path_of

STANDINS = ":".join(str(path_of(name)) for name in MODULES)


def python(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter with this one's paths after the stand-ins; `env` adds or replaces."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    clean |= {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": STANDINS, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, *argv], env=clean | env, capture_output=True, text=True, check=False
    )
