"""Section of a site file about tetraspark's own collectives."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import Field, PlainValidator, ValidationInfo

from tetraspark.site.finding import Finding
from tetraspark.site.lookup import Document, table_at
from tetraspark.site.section import PathText, Section, refusal

LARGEST = 256 << 20
TUNED = "tuned"
"""The word for a size that `tetraspark tune` has measured and stored."""


def _is_size(value: object) -> TypeGuard[int]:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return 16 <= value <= LARGEST and value % 16 == 0


def _tunable(value: Any, info: ValidationInfo) -> Any:
    if value == TUNED or _is_size(value):
        return value
    seen = f"`collectives.{info.field_name}` is {value!r}"
    wanted = f'"{TUNED}", or a multiple of 16 from 16 to {LARGEST}'
    raise refusal(seen, wanted, f'{info.field_name} = "{TUNED}"')


Tunable = Annotated[int | Literal["tuned"], PlainValidator(_tunable)]


class Collectives(Section):
    """Which transport carries tensor-parallel collectives, and its limits.

    Larger ones, and those of other groups, stay on the engine's own.
    """

    transport: Literal["off", "shm", "verbs"] = Field(
        description="`off` leaves all to the engine; `shm` is shared memory, for a local line; "
        "`verbs` is RDMA over the devices of the fabric, for a fleet"
    )
    max_reduce_bytes: int = Field(
        default=2 << 20, ge=16, le=LARGEST, multiple_of=16, description="largest all-reduce at once"
    )
    max_gather_bytes: int = Field(
        default=1 << 20, ge=16, le=LARGEST, multiple_of=16, description="largest gathered shard"
    )
    max_two_shot_bytes: Tunable | None = Field(
        default=None, description="largest all-reduce in two steps; unset: none"
    )
    two_shot_from: Tunable | None = Field(
        default=None, description="two steps from this size on; unset: above `max_reduce_bytes`"
    )
    lanes: int = Field(
        default=1, ge=1, le=4, description="paths to each peer; with `verbs` a device each"
    )
    min_lanes: int = Field(
        default=0, ge=0, le=4, description="with `verbs`: lanes to a peer that are enough; 0: all"
    )
    ring_plan: PathText | None = Field(
        default=None, description="with `verbs` on a ring: the file of the plan that is applied"
    )
    late_seconds: int = Field(
        default=300, ge=1, le=86_400, description="patience with a peer that lives but is late"
    )
    freeze_seconds: int = Field(
        default=20, ge=1, le=86_400, description="patience with a peer whose process is stopped"
    )


def two_shot_findings(document: Document) -> Iterator[Finding]:
    """Find sizes between which nothing can go in two steps."""
    table = table_at(document, "collectives")
    start, largest = table.get("two_shot_from"), table.get("max_two_shot_bytes")
    first, last = ("collectives", "two_shot_from"), ("collectives", "max_two_shot_bytes")
    if start is not None and largest is None:
        wanted = "`max_two_shot_bytes` beside it: without it nothing goes in two steps"
        yield Finding(
            first, "`two_shot_from` is set alone", wanted, f'max_two_shot_bytes = "{TUNED}"'
        )
    if _is_size(start) and _is_size(largest) and start > largest:
        seen = f"two_shot_from = {start} with max_two_shot_bytes = {largest}"
        yield Finding(first, seen, "two_shot_from at most the other", "lower it", (last,))
    at_once = table.get("max_reduce_bytes", Collectives.model_fields["max_reduce_bytes"].default)
    if start is None and _is_size(largest) and _is_size(at_once) and largest <= at_once:
        seen = f"max_two_shot_bytes = {largest}, and up to {at_once} all goes at once"
        wanted = "more than `max_reduce_bytes`, or `two_shot_from` beside it"
        yield Finding(last, seen, wanted, f'two_shot_from = "{TUNED}"')
