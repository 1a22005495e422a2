"""Where this machine keeps the runs and receipts of all lines."""

import os
import shlex
from pathlib import Path

from tetraspark.errors import Problem, UsageError

VARIABLE = "TETRASPARK_STATE"


def state_home() -> Path:
    """Return the folder of all runs: TETRASPARK_STATE, or the XDG state folder's.

    A relative XDG_STATE_HOME is ignored, as the XDG specification asks. Raises UsageError for what
    is no folder and cannot become one, and for one that this login may not look into.
    """
    home = _named()
    there = next(one for one in (home, *home.parents) if os.path.lexists(one))
    if not os.path.isdir(there):  # noqa: PTH112 a Path raises
        raise _useless(there, "not a folder")
    if not os.access(there, os.X_OK, effective_ids=True):
        raise _useless(there, "permission denied")
    return home


def require_writable(folder: Path) -> None:
    """Make a folder of the state, before the work whose result is to go there.

    Raises UsageError for one that cannot be made, or not be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _useless(folder, f"cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise _useless(folder, "not writable")


def _named() -> Path:
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    xdg = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        return (xdg if xdg.is_absolute() else Path.home() / ".local" / "state") / "tetraspark"
    except RuntimeError as error:
        wanted, fix = "a folder for state", f"export {VARIABLE}=FOLDER"
        raise UsageError(Problem(VARIABLE, f"not set, and {error}", wanted, fix)) from error


def _useless(folder: Path, seen: str) -> UsageError:
    wanted = "a folder of this login's own: runs and receipts are kept there"
    fix = f"ls -ld {shlex.quote(str(folder))}; or name another in {VARIABLE}"
    return UsageError(Problem(str(folder), seen, wanted, fix))
