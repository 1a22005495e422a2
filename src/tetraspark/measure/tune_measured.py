"""How thresholds were measured: kept beside them, and read back for people."""

from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.line.threshold_store import Stored
from tetraspark.measure.tune import Curve, typical


@dataclass(frozen=True)
class Measured:
    """One curve a repeat, each a median of `rounds`; `about` describes machine and software.

    `at` is the time of the measurement, ISO 8601; `rival` is gloo or nccl.
    """

    at: str
    about: dict[str, str]
    rival: str
    rounds: int
    repeats: tuple[Curve, ...]

    @property
    def curve(self) -> Curve:
        """The medians over the repeats."""
        return typical(self.repeats)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-able."""
        return asdict(self)


def measured_of(stored: Stored) -> Measured:
    """Return how stored thresholds were measured. Raises UsageError for a damaged file."""
    try:
        found = TypeAdapter(Measured).validate_python(stored.measured)
        if not found.repeats or not found.curve:
            raise ValueError("no curve")
    except (ValidationError, ValueError) as error:
        seen = f"`measured` is damaged: {str(error).splitlines()[0]}"
        fix = f"rm '{stored.path}', then measure again: tetraspark tune"
        raise UsageError(
            Problem(str(stored.path), seen, "curves of `tetraspark tune`", fix)
        ) from error
    return found
