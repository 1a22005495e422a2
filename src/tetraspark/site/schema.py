"""The site file as a value: machines and choices, checked as a whole at construction."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from tetraspark.site.collectives import Collectives
from tetraspark.site.guards import Guards
from tetraspark.site.keypath import dotted
from tetraspark.site.machines import Fabric, Image, Nccl, Node, Ring, Ssh, Weights
from tetraspark.site.prefill_split import PrefillSplit
from tetraspark.site.rules import cross_check
from tetraspark.site.section import Name, Section
from tetraspark.site.serving import (
    FLEET_DEADLINES,
    Api,
    Canary,
    Deadlines,
    Engine,
    Engram,
    Model,
    Speculative,
)
from tetraspark.site.startup import Startup
from tetraspark.site.watch import Watch

__all__ = [
    "Api",
    "Canary",
    "Deadlines",
    "Engine",
    "Engram",
    "Fabric",
    "Guards",
    "Image",
    "Model",
    "Nccl",
    "Node",
    "PrefillSplit",
    "Ring",
    "Site",
    "Speculative",
    "Ssh",
    "Startup",
    "Watch",
    "Weights",
]

CROSS_CHECK = "site_cross_check"
"""Type of the pydantic error that repeats what `rules.cross_check` found."""


class Site(Section):
    """One site; `kind` decides which sections there are (docs/site-file.md)."""

    name: Name = Field(description="name of the line, in run ids and container names")
    kind: Literal["local", "fleet"] = Field(
        description="all ranks on this machine's CPU, or one GPU node a rank over ssh"
    )
    nodes: tuple[Node, ...] = Field(min_length=1, description="one table a rank, the head first")
    model: Model = Field(description="what is served")
    engine: Engine = Field(description="how the engine runs")
    api: Api = Field(description="where clients connect")
    deadlines: Deadlines = Field(
        default_factory=Deadlines, description="how long each phase may take"
    )
    startup: Startup = Field(
        default_factory=Startup, description="what is watched while a fleet starts"
    )
    watch: Watch = Field(default_factory=Watch, description="how a served line is watched")
    collectives: Collectives | None = Field(
        default=None, description="tetraspark's own collectives; without it they are off"
    )
    env: Mapping[str, str] = Field(
        default={}, description="further environment variables of every rank"
    )
    image: Image | None = Field(default=None, description="container image")
    weights: Weights | None = Field(default=None, description="how workers get the checkpoint")
    fabric: Fabric | None = Field(default=None, description="RoCE network")
    ssh: Ssh | None = Field(default=None, description="how nodes are reached")
    speculative: Speculative | None = Field(default=None, description="speculative decoding")
    prefill_split: PrefillSplit | None = Field(
        default=None, description="ranks share the index scores of long prefills"
    )
    engram: Engram | None = Field(default=None, description="Engram tables")
    guards: Guards | None = Field(default=None, description="limits on one request")

    @property
    def transport(self) -> Literal["off", "shm", "verbs"]:
        """What carries the collectives: without its section they are off."""
        return self.collectives.transport if self.collectives else "off"

    @model_validator(mode="before")
    @classmethod
    def _kind_defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("kind") != "fleet":
            return data
        deadlines = data.get("deadlines", {})
        if not isinstance(deadlines, dict):
            return data
        return {**data, "deadlines": {**FLEET_DEADLINES, **deadlines}}

    @model_validator(mode="after")
    def _cross_checked(self) -> Self:
        found = cross_check(self.model_dump(exclude_unset=True))
        if found:
            texts = "; ".join(f"{dotted(f.path)}: {f.seen} (wanted {f.wanted})" for f in found)
            raise PydanticCustomError(CROSS_CHECK, "{texts}", {"texts": texts})
        return self
