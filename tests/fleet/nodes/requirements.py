"""What the fleet needs of this machine."""

import os
import shutil

import pytest

PROGRAMS = {
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "rsync": "rsync",
    "dockerd": "docker.io",
    "tini": "tini",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "mkfs.ext4": "e2fsprogs",
    "nsenter": "util-linux",
    "busybox": "busybox-static",
}
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
PATH = f"{os.environ.get('PATH', '')}:{SBIN}"


def missing() -> list[str]:
    """Return what the fleet lacks on this machine: packages to install, and root."""
    absent = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    found = {PROGRAMS[program] for program in absent}
    return [*sorted(found), *([] if os.geteuid() == 0 else ["root"])]


def require_fleet() -> None:
    """Without what four nodes need, fail in CI and skip elsewhere, and say what it is."""
    lacking = missing()
    if lacking:
        text = f"the fleet's four nodes need {', '.join(lacking)}"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
