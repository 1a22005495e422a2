"""Published numbers of others (anchors.toml), to stand beside runs on Sparks and nothing else."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Said = Annotated[str, StringConstraints(min_length=1)]


class Anchor(BaseModel):
    """One published row: who, on what, when (ISO date, None where not told), and where it stands.

    `values` are by what was asked, one a column of the group; "" where nothing was published.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    label: Said
    hardware: Said
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    url: Annotated[str, StringConstraints(pattern=r"^https://[\w./#%-]+$")]
    values: Annotated[dict[Said, list[float | int | str]], Field(min_length=1)]


class AnchorGroup(BaseModel):
    """Rows measured by one protocol: comparable with each other."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    suite: Said
    protocol: Said
    columns: list[Said]
    row: Annotated[list[Anchor], Field(min_length=1)]

    @model_validator(mode="after")
    def _as_wide_as_its_columns(self) -> Self:
        for row in self.row:
            for name, values in row.values.items():
                if len(values) != len(self.columns):
                    raise ValueError(f"{row.label}, {name}: {len(values)} values")
        return self


@cache
def anchors() -> tuple[AnchorGroup, ...]:
    """Return the published numbers, in the order of the file."""
    text = files(__package__).joinpath("anchors.toml").read_text(encoding="utf-8")
    return tuple(AnchorGroup.model_validate(group) for group in tomllib.loads(text)["group"])
