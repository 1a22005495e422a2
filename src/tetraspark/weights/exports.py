"""What the NFS server has to export, as exports(5) and fstab(5) write it. Pure."""

import ipaddress
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

FOLDER = "/etc/exports.d"
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+-")


@dataclass(frozen=True)
class Export:
    """A folder of the server, under the path that clients mount, and who may.

    Clients read as the owner of the files (`uid`), whoever they are, and never write. The fsid
    makes the export the same one after a reboot.
    """

    line: str
    folder: str
    path: str
    clients: tuple[str, ...]
    uid: int

    @property
    def file(self) -> str:
        """The file of ours for exportfs."""
        return f"{FOLDER}/tetraspark-{self.line}.exports"

    @property
    def text(self) -> str:
        """The text of that file."""
        fsid = uuid.uuid5(uuid.NAMESPACE_URL, f"tetraspark:{self.line}:{self.path}")
        options = f"ro,sync,all_squash,anonuid={self.uid},no_subtree_check,fsid={fsid}"
        clients = " ".join(f"{client}({options})" for client in self.clients)
        return f"{escaped(self.path)} {clients}\n"

    @property
    def fstab(self) -> str:
        """The line that mounts the folder at the exported path after a reboot."""
        return f"{escaped(self.folder)} {escaped(self.path)} none bind,ro 0 0\n"


def escaped(path: str) -> str:
    """Return a path as one word of either file: octal for what is not plain."""
    return "".join(
        char if char in _PLAIN else "".join(f"\\{byte:03o}" for byte in char.encode())
        for char in path
    )


def admits(clients: Sequence[str], address: str) -> bool | None:
    """Tell whether an address is among the clients; None where that is a matter of names."""
    own = ipaddress.ip_address(address)
    names = False
    for client in clients:
        try:
            if own in ipaddress.ip_network(client):
                return True
        except ValueError:
            names = True
    return None if names else False
