"""The shapes of a run's records, as far as somebody reads them back."""

from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from tetraspark.fleet.record_file import Shape


class PlannedRank(Shape):
    """A rank of plan.json."""

    rank: int
    node: str


class PlannedSetting(Shape):
    """A setting of plan.json."""

    kind: str
    name: str
    value: str | None


class PlannedLogin(Shape):
    """How a node of plan.json is reached."""

    node: str
    host: str
    user: str | None
    identity: str | None


class StoredPlan(Shape):
    """plan.json: `Plan.as_dict`."""

    line: str
    kind: Literal["local", "fleet"]
    site: str
    site_sha256: str
    host: str
    port: Annotated[int, Field(ge=0, le=65_535)]
    url: str
    served_name: str
    ranks: Annotated[list[PlannedRank], Field(min_length=1)]
    settings: list[PlannedSetting]
    logins: list[PlannedLogin] = Field(default_factory=list)

    @model_validator(mode="after")
    def _reached(self) -> Self:
        unknown = {one.node for one in self.ranks} - {one.node for one in self.logins}
        if self.kind == "fleet" and unknown:
            raise ValueError(f"no login of {', '.join(sorted(unknown))}")
        return self


class Tolerated(Shape):
    """A failed check of state.json that the start was told to go on despite."""

    id: str
    node: str | None
    observed: str


class StoredState(Shape):
    """state.json: how far a start came, and what it would leave behind."""

    phase: str
    since: float = 0.0
    reason: str = ""
    shared_memory: list[str] = Field(default_factory=list)
    tolerated: list[Tolerated] = Field(default_factory=list)


class StoredEffective(Shape):
    """One value of effective.json."""

    setting: str
    same: bool


EFFECTIVE = TypeAdapter(list[StoredEffective])
