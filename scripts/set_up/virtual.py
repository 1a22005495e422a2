"""The empty virtual environment: made, found whole, or made anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts.set_up.step import SetupError, run_step


def make_environment(venv: Path) -> None:
    """Make the empty environment, unless a whole one of this Python is there.

    An environment without a working pip (its creation was interrupted) or of another Python is
    made anew. Raises SetupError for a folder with a Python that is no virtual environment:
    clearing it would delete what somebody else keeps there.
    """
    command = [sys.executable, "-m", "venv"]
    settings = venv / "pyvenv.cfg"
    if os.path.lexists(str(venv / "bin" / "python")) or settings.exists():
        fault = fault_of(venv)
        if not fault:
            return
        if not settings.exists():
            raise SetupError(
                f"{venv} holds a Python, but no virtual environment; "
                "name another place: make VENV=/path/to/venv serve"
            )
        print(f"set-up: {venv} {fault}: it is made anew", flush=True)
        command.append("--clear")
    run_step("virtual environment", [*command, str(venv)], venv)


def fault_of(venv: Path) -> str:
    """Return why an environment cannot be used by this Python, or nothing if it can."""
    python = str(venv / "bin" / "python")
    version = output_of([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    wanted = "{}.{}".format(*sys.version_info[:2])
    if version is None:
        return "has no Python that runs"
    if version != wanted:
        return f"is of Python {version}, asked for is {wanted}"
    if not (venv / "pyvenv.cfg").exists():
        return "is no virtual environment"
    return "" if output_of([python, "-m", "pip", "--version"]) else "has no pip that runs"


def output_of(command: list[str]) -> str | None:
    """Return what a command prints, or None when it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
