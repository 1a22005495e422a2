"""How the nodes of a site are reached."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import LoadedSite

KEY = "ssh.identity_file"


@dataclass(frozen=True)
class Login:
    """Where ssh connects for one node; what is None is left to the user's ssh configuration."""

    node: str
    host: str
    user: str | None = None
    identity: Path | None = None

    def __str__(self) -> str:
        """Return the destination as the ssh command takes it."""
        return f"{self.user}@{self.host}" if self.user else self.host

    def as_dict(self) -> dict[str, str | None]:
        """Return the fields, JSON-able."""
        return {name: value if value is None else str(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, found: Mapping[str, str | None]) -> Self:
        """Return the login that `as_dict` made. Raises KeyError for another text."""
        identity = found["identity"]
        key = None if identity is None else Path(identity)
        return cls(found["node"] or "", found["host"] or "", found["user"], key)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of ssh that say who logs in."""
        user = ("-l", self.user) if self.user else ()
        return (*user, *(("-i", str(self.identity)) if self.identity else ()))


def logins(loaded: LoadedSite, offline: bool = False) -> tuple[Login, ...]:
    """Return the login of every node of a fleet site, in rank order.

    Raises UsageError for a node that has no address and for a key that is not there; `offline`
    leaves the key to whoever will use it.
    """
    ssh = loaded.site.ssh
    identity = ssh.identity_file if ssh else None
    key = None if identity is None else loaded.resolve(identity, KEY)
    if key is not None and not offline:
        _require_key(loaded, key)
    found = []
    for index, node in enumerate(loaded.site.nodes):
        host = node.ssh_host or node.host
        if host is None:
            where = loaded.origin(f"nodes[{index}]").where
            seen = f"node {node.name!r} has neither `host` nor `ssh_host`"
            raise UsageError(Problem(where, seen, "an address to reach it", 'add host = "…"'))
        found.append(Login(node.name, host, node.user or (ssh.user if ssh else None), key))
    return tuple(found)


def _require_key(loaded: LoadedSite, path: Path) -> None:
    """Refuse a private key that is not there; ssh itself only warns of it, and tries others."""
    if not path.is_file():
        fix = f"correct the path, or make one: ssh-keygen -t ed25519 -f {path}"
        where = loaded.origin(KEY).where
        raise UsageError(Problem(where, f"no such key: {path}", "a private key", fix))
