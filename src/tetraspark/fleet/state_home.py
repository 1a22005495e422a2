"""Where this machine keeps the runs and receipts of all lines."""

import os
from pathlib import Path


def state_home() -> Path:
    """Return the folder of all runs: TETRASPARK_STATE, or the XDG state folder's.

    A relative XDG_STATE_HOME is ignored, as the XDG specification asks.
    """
    named = os.environ.get("TETRASPARK_STATE")
    if named:
        return Path(named).absolute()
    xdg = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".local" / "state") / "tetraspark"
