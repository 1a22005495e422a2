"""What a folder is mounted from, by /proc/self/mountinfo (proc(5)). Pure."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

MOUNTINFO = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A mount: where, of which type (`nfs4`, `ext4`), and from what."""

    point: str
    kind: str
    source: str

    @property
    def remote(self) -> bool:
        """Whether the files are another machine's."""
        return self.kind.startswith("nfs") or self.kind in ("cifs", "ceph", "9p", "fuse.sshfs")


def mount_of(mountinfo: str, path: str) -> Mount | None:
    """Return the mount that a path is on; None where no line tells."""
    found = None
    for line in mountinfo.splitlines():
        front, separator, back = line.partition(" - ")
        fields, after = front.split(" "), back.split(" ")
        if not separator or len(fields) < 5 or len(after) < 2:
            continue
        point = _plain(fields[4])
        covers = PurePosixPath(path).is_relative_to(point)
        # of two mounts on one point, the later hides the earlier
        if covers and (found is None or len(point) >= len(found.point)):
            found = Mount(point, after[0], _plain(after[1]))
    return found


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
