"""Where the sockets of ssh sessions lie while a program runs, and what killed ones left there."""

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import IO

from tetraspark.errors import Problem, RunError

LOCK = "lock"
# A socket's path has 108 bytes (unix(7)); ssh appends 17 to it while it opens one, and below the
# home come our folder's name and the number of the node.
HOME_BYTES = 60


class ControlFolder:
    """A folder for sockets, named by the process, that no other user can enter.

    The folders that killed programs left are removed when one is made. A program holds a lock as
    long as it lives: a number of a process may be given anew, or be that of another namespace.
    Raises RunError when the folder above cannot be trusted.
    """

    def __init__(self) -> None:
        home = _home()
        with (home / LOCK).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            _sweep(home)
            self.path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=home))
            self._lock = _held(self.path)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def _home() -> Path:
    """Return the folder above: in the user's runtime folder, or one of the user's own in /tmp."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK) and len(os.fsencode(runtime)) < HOME_BYTES:
        home = Path(runtime) / "tetraspark"
    else:
        home = Path("/tmp") / f"tetraspark-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    found = home.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or mode & 0o077:
        seen = f"owner {found.st_uid}, mode {mode:o}"
        wanted = f"a folder of user {os.getuid()} that no other can enter, for ssh's sockets"
        fix = f"ls -ld {home}; remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        raise RunError(Problem(str(home), seen, wanted, fix))
    return home


def _sweep(home: Path) -> None:
    """Remove the folders whose programs have ended without doing it."""
    for folder in home.iterdir():
        if folder.name == LOCK:
            continue
        lock = _held(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            lock.close()


def _held(folder: Path) -> IO[str] | None:
    """Return the folder's lock, held; None where another program holds it."""
    try:
        lock = (folder / LOCK).open("w")
    except OSError:  # removed meanwhile, for only the making of folders waits for its turn
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
