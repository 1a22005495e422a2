"""A check as the catalogue defines it: what it asks of a node, and who judges the answer."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Wanted
from tetraspark.site.load import LoadedSite

Ask = Callable[[LoadedSite, int], Wanted]
NodeJudge = Callable[[NodeView], Iterable[Finding]]
FleetJudge = Callable[[Mapping[str, NodeView]], Iterable[Finding]]
Kind = Literal["fleet", "local"]


@dataclass(frozen=True)
class Definition:
    """A check: stable ID, one line about it, the kinds of line it is for.

    One of `node` (judges each node by itself) and `fleet` (compares nodes) is set. `ask` says what
    a probe reads for it, by rank. `required`: not to know fails the run as well. `burns`: it is
    made only when a burn is asked for. `idle`: it is of a node on which the line does not run.
    """

    id: str
    title: str
    ask: tuple[Wanted | Ask, ...] = ()
    node: NodeJudge | None = None
    fleet: FleetJudge | None = None
    kinds: tuple[Kind, ...] = ("fleet",)
    required: bool = False
    burns: bool = False
    idle: bool = False

    def __post_init__(self) -> None:
        if (self.node is None) == (self.fleet is None):
            raise ValueError(f"{self.id}: one judge, of a node or of the fleet")

    @property
    def scope(self) -> str:
        """Whether it looks at each node or compares them."""
        return "node" if self.node is not None else "fleet"

    def as_dict(self) -> dict[str, object]:
        """Return what a person chooses by, for `--json`."""
        names = ("id", "title", "scope", "kinds", "required", "burns")
        return {name: getattr(self, name) for name in names}

    def wanted(self, loaded: LoadedSite, rank: int) -> Wanted:
        """Return what a probe of a rank's node reads for it."""
        found = Wanted()
        for one in self.ask:
            found = found | (one if isinstance(one, Wanted) else one(loaded, rank))
        return found
