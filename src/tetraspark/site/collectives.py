"""Section of a site file about tetraspark's own collectives."""

from typing import Literal

from pydantic import Field

from tetraspark.site.section import Section


class Collectives(Section):
    """Which transport carries small tensor-parallel collectives, and its limits.

    Larger ones, and those of other groups, stay on the engine's own.
    """

    transport: Literal["off", "shm"] = Field(
        description="`off` leaves all to the engine; `shm` is shared memory, for ranks on one host"
    )
    max_reduce_bytes: int = Field(
        default=2 << 20, ge=16, le=256 << 20, multiple_of=16, description="largest all-reduce"
    )
    max_gather_bytes: int = Field(
        default=1 << 20, ge=16, le=256 << 20, multiple_of=16, description="largest gathered shard"
    )
    lanes: int = Field(default=1, ge=1, le=4, description="paths to each peer")
    late_seconds: int = Field(
        default=300, ge=1, le=86_400, description="patience with a peer that lives but is late"
    )
    freeze_seconds: int = Field(
        default=20, ge=1, le=86_400, description="patience with a peer whose process is stopped"
    )
