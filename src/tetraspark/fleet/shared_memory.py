"""Files under /dev/shm: which of them processes have mapped, and which a run may have left there.

What a run left is removed by its recorded name. A record can be damaged or written by others, so
only a name that this project, the engine or its libraries give is believed.
"""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
PROC = Path("/proc")
CLOCK_SECONDS = 60.0
"""How far the clock may have been set back since the run was made."""

_NAMES = (
    r"tetraspark-\d+-\d+-\d+",  # collectives/shm.py
    r"psm_[0-9a-f]{1,16}",  # multiprocessing.shared_memory
    r"sem\.mp-[a-z0-9_]{1,16}",  # multiprocessing's semaphores
    r"torch_\d+_\d+_\d+",  # torch.multiprocessing
    r"nccl-[A-Za-z0-9]{6}",
    r"sgl(ang)?_[A-Za-z0-9_.-]{1,200}",  # sglang 0.5.23: make_shm_name, load_snapshot.py
    r"multi_tokenizer_args_\d+",  # sglang 0.5.23, multi_tokenizer_mixin.py
)
_NAME = re.compile("|".join(_NAMES), re.ASCII)


def mapped(pids: Iterable[int], proc: Path = PROC) -> set[Path]:
    """Return the files under /dev/shm that these processes have mapped.

    By inode: a named semaphore is mapped under a temporary name and linked to its own later.
    """
    inodes = set()
    for pid in pids:
        try:
            text = (proc / str(pid) / "maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = (line.split(maxsplit=5) for line in text.splitlines())
        inodes |= {int(one[4]) for one in fields if one[-1].startswith(f"{SHARED_MEMORY}/")}
    return {file for file in SHARED_MEMORY.iterdir() if file.lstat().st_ino in inodes}


def is_segment_name(text: str) -> bool:
    """Tell whether a path can be that of a segment which a run's processes made. Pure."""
    folder, _, name = text.rpartition("/")
    return folder == str(SHARED_MEMORY) and _NAME.fullmatch(name) is not None


def foreign(text: str, since: float) -> str | None:
    """Return why a recorded path is not to be removed, for a run made at `since` (Unix time).

    None for one that can be the run's, and for one that is not there.
    """
    if not is_segment_name(text):
        return "no name that a run's processes give their shared memory"
    try:
        found = Path(text).lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    if found.st_uid != os.geteuid():
        return f"of user {found.st_uid}"
    if found.st_ctime < since - CLOCK_SECONDS:
        return "older than the run"
    return None


def remove(files: Iterable[Path]) -> list[Path]:
    """Remove regular files of /dev/shm that no process has mapped; return those that were there."""
    used = mapped(int(folder.name) for folder in PROC.iterdir() if folder.name.isdigit())
    removed = []
    for file in sorted(set(files) - used):
        # By its name in that one folder, which is never a link: nothing else can be meant.
        place = os.open(SHARED_MEMORY, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if stat.S_ISREG(os.lstat(file.name, dir_fd=place).st_mode):
                os.unlink(file.name, dir_fd=place)
                removed.append(file)
        except FileNotFoundError:
            pass
        finally:
            os.close(place)
    return removed
