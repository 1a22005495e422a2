"""The words of ssh and rsync commands that reach a node. Pure."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from tetraspark.fleet.login import Login


def ssh_words(login: Login, socket: Path, alive: int, connect: int, **more: str) -> list[str]:
    """Return ssh and its options for a node, without destination and command.

    `socket` is that of the node's session; `alive` and `connect` are seconds of silence.
    """
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(connect),
        "ServerAliveInterval": str(alive // 3),
        "ServerAliveCountMax": "3",
        "ControlPath": str(socket),
        "ControlMaster": "no",
        # What a person's configuration may add for a person's sessions.
        "ClearAllForwardings": "yes",
        "RemoteCommand": "none",
        "LogLevel": "INFO",
    } | more
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-T", *login.options, *words]


def control_words(socket: Path) -> list[str]:
    """Return ssh for a word to a session: forwardings of the user's own are not for ours."""
    options = ("ClearAllForwardings=no", f"ControlPath={socket}")
    return ["ssh", *(word for option in options for word in ("-o", option)), "-F", "none"]


def rsync_words(
    login: Login, folder: Path, target: str, ssh: Sequence[str], timeout: int
) -> list[str]:
    """Return the command that makes a folder of a node equal to a local one, with an absolute path.

    `ssh` is what rsync reaches the node with; `timeout` in seconds without any transfer. By
    checksum, because a file that was changed on the node with its size and time kept would pass
    for the right one.
    """
    return [
        *("rsync", "--recursive", "--links", "--perms", "--times", "--checksum", "--delete"),
        *("--timeout", str(timeout), "--rsh", shlex.join(ssh)),
        *("--", f"{folder.absolute()}/", f"{login.host}:{target}/"),
    ]
