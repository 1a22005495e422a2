"""The plan: what will run where, as a pure value.

A plan is computed from the site and an inventory, printed by `plan` and `--dry-run`, and executed
by `serve`, which does nothing else than execute it.
"""

from dataclasses import asdict, dataclass
from typing import Literal

from tetraspark.errors import Problem
from tetraspark.fleet.login import Login
from tetraspark.fleet.rank import RankCommand
from tetraspark.site.origin import Origin


@dataclass(frozen=True)
class Setting:
    """One flag or variable of the engine, with where its value came from.

    `value` is None for a flag that takes none; `rank` is None for a setting of every rank.
    """

    kind: Literal["flag", "env"]
    name: str
    value: str | None
    origin: Origin
    rank: int | None = None


@dataclass(frozen=True)
class Plan:
    """A line: its ranks, its public address, the transport of its small collectives ("off": the
    engine's own), every setting with its origin, how the nodes of a fleet are reached, and what
    whoever reads the plan has to know of it.
    """

    line: str
    kind: Literal["local", "fleet"]
    site: str
    site_sha256: str
    engine: str
    model: str
    served_name: str
    host: str
    port: int
    transport: Literal["off", "shm", "verbs"]
    ranks: tuple[RankCommand, ...]
    settings: tuple[Setting, ...]
    logins: tuple[Login, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def url(self) -> str:
        """Base URL of the OpenAI-compatible API."""
        return f"http://{self.host}:{self.port}/v1"

    def as_dict(self) -> dict[str, object]:
        """Return the plan as JSON-able values; a plan holds no secrets."""
        reached = [login.as_dict() for login in self.logins]
        return {**asdict(self), "logins": reached, "url": self.url}
