"""What to look at on a node, and what was found there: texts, before anything is made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

READ_ONLY: tuple[tuple[str, ...], ...] = (
    ("devlink", "-j"),
    ("docker", "image", "inspect"),
    ("docker", "info"),
    ("docker", "inspect"),
    ("docker", "ps"),
    ("docker", "version"),
    ("docker", "volume", "inspect"),
    ("ethtool",),
    ("ibv_devinfo",),
    ("ip", "-j"),
    ("lldpctl", "-f", "json"),
    ("lspci",),
    ("lsmod",),
    ("journalctl", "--no-pager"),
    ("dmesg",),
    ("nvidia-smi",),
    ("ping", "-n", "-c"),
    ("rdma", "-j"),
    ("ss",),
    ("tc", "-j"),
    ("tc", "-s", "-j"),
    ("uname",),
    ("ulimit",),
)
"""How a command of a probe begins: nothing else is sent, so a probe changes nothing."""

CHANGES = frozenset(
    ("add", "append", "change", "clear", "del", "delete", "flush", "reload", "replace", "set")
)
"""Words of iproute2 that change something."""


@dataclass(frozen=True)
class Wanted:
    """What a probe reads on a node. Nothing in it can change the node.

    `files` are globs whose texts are read (at most 64 KiB each) and `links` globs whose targets
    are resolved; `sizes` are globs of files whose sizes in bytes are taken, and `space` paths
    whose file system's room is; `shards` are globs of safetensors files whose headers are read for
    the sizes they declare. A leading `~` is the login's home there. `commands` are argv by
    name, each beginning with words of `READ_ONLY`, each with at most 4 s. `ports` are TCP ports
    whose listeners are named. Raises ValueError for a command that could change something.
    """

    files: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    space: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shards: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for argv in self.commands.values():
            begins = any(argv[: len(start)] == start for start in READ_ONLY)
            if not begins or CHANGES & set(argv):
                raise ValueError(f"not a command that only reads: {argv!r}")

    def __or__(self, other: Self) -> "Wanted":
        """Return what both want; a name of a command may not mean two commands."""
        for name in self.commands.keys() & other.commands.keys():
            if self.commands[name] != other.commands[name]:
                raise ValueError(f"two commands named {name!r}")
        return Wanted(
            tuple(dict.fromkeys(self.files + other.files)),
            tuple(dict.fromkeys(self.links + other.links)),
            tuple(dict.fromkeys(self.sizes + other.sizes)),
            tuple(dict.fromkeys(self.space + other.space)),
            tuple(dict.fromkeys(self.ports + other.ports)),
            {**self.commands, **other.commands},
            tuple(dict.fromkeys(self.shards + other.shards)),
        )


@dataclass(frozen=True)
class Said:
    """How a command ended: 127 when there is no such program, 124 when it took too long."""

    rc: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Space:
    """A file system, in bytes; `path` is the nearest folder that exists."""

    path: str
    total: int
    free: int


@dataclass(frozen=True)
class Facts:
    """What was found on one node.

    `home` is the login's, `uid` its number, `time` the node's clock in Unix seconds. `files` and
    `links` are by path, and hold only what could be read; `globs` lists the paths that each glob
    of `sizes` matched, also where that is none. `listeners` names who listens on a port: ""
    where this login may not know. `declared` are the sizes in bytes that safetensors files say
    they have, where a header could be read. `ssh` is the node's own address that the probe came
    in on, "" where it did not come over ssh.
    """

    node: str
    home: str
    uid: int
    time: float
    files: Mapping[str, str]
    links: Mapping[str, str]
    sizes: Mapping[str, int]
    globs: Mapping[str, tuple[str, ...]]
    space: Mapping[str, Space]
    listeners: Mapping[int, str]
    commands: Mapping[str, Said]
    declared: Mapping[str, int] = field(default_factory=dict)
    ssh: str = ""

    @classmethod
    def of(cls, node: str, found: Mapping[str, Any]) -> Self:
        """Return the facts that `fleet.inside.look` printed. Raises KeyError, TypeError."""
        return cls(
            node=node,
            home=found["home"],
            uid=found["uid"],
            time=found["time"],
            files=found["files"],
            links=found["links"],
            sizes=found["sizes"],
            globs={pattern: tuple(paths) for pattern, paths in found["globs"].items()},
            space={path: Space(**space) for path, space in found["space"].items()},
            listeners={int(port): name for port, name in found["listeners"].items()},
            commands={name: Said(**said) for name, said in found["commands"].items()},
            declared=found.get("declared", {}),
            ssh=found.get("ssh", ""),
        )

    def expand(self, path: str) -> str:
        """Return a path of a site file as this node's login means it: `~` is its home."""
        return expanded(path, self.home)


def expanded(path: str, home: str) -> str:
    """Return a path with `~` as the home folder `home`."""
    return home + path[1:] if path == "~" or path.startswith("~/") else path
