"""Where the checkpoint lies on the nodes of a site: one value that every verb of weights uses."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import LoadedSite
from tetraspark.weights.mount import nfs_volume

Mode = Literal["local", "nfs", "copy"]


@dataclass(frozen=True)
class Place:
    """The folder as the site names it, the mode, and the nodes in rank order.

    `holders` have the folder itself; the others mount it over NFS.
    """

    line: str
    path: str
    mode: Mode
    nodes: tuple[str, ...]
    holders: tuple[str, ...]

    @property
    def head(self) -> str:
        """The node of rank 0."""
        return self.nodes[0]


def place_of(loaded: LoadedSite) -> Place:
    """Return where a fleet's weights are.

    Raises UsageError for a site of another kind, and for a path that is no place on a node.
    """
    site = loaded.site
    if site.weights is None:
        where = loaded.origin("kind").where
        wanted = 'kind = "fleet": a local line reads its folder where it is'
        fix = f"tetraspark plan --site {loaded.path} shows it"
        raise UsageError(Problem(where, f'kind = "{site.kind}"', wanted, fix))
    path = site.model.path.rstrip("/")
    if not path.startswith(("/", "~/")):
        where = loaded.origin("model.path").where
        wanted = "a path that each node can tell: from `/`, or from `~/`, the login's home there"
        fix = 'path = "~/models/NAME"'
        raise UsageError(Problem(where, f"model.path is {site.model.path!r}", wanted, fix))
    nodes = tuple(node.name for node in site.nodes)
    holders = tuple(name for rank, name in enumerate(nodes) if nfs_volume(site, rank) is None)
    return Place(site.name, path, site.weights.mode, nodes, holders)


def chosen(nodes: Collection[str], names: Collection[str] | None, what: str) -> tuple[str, ...]:
    """Return the nodes that were named, or all.

    Raises UsageError for names that are none, and when there are no nodes to choose from.
    """
    if not nodes:
        wanted, fix = f"nodes {what}", "tetraspark weights status shows where the folder is"
        raise UsageError(Problem("weights.mode", "there are none", wanted, fix))
    unknown = [name for name in names or () if name not in nodes]
    if unknown:
        wanted = f"one of {', '.join(nodes)}: nodes {what}"
        raise UsageError(*(Problem("--node", repr(name), wanted, "correct it") for name in unknown))
    return tuple(name for name in nodes if not names or name in names)
