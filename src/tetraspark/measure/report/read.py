"""Reading a report: which suite wrote it, and what it says. Anything else is refused by its key."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.measure.about import HardwareClass
from tetraspark.measure.report.one_machine_schema import (
    CollectivesReport,
    StartReport,
    TransportReport,
)
from tetraspark.measure.report.schema import (
    AboutSaid,
    DecodeReport,
    NeedleReport,
    Part,
    PrefillReport,
    QualityReport,
    SoakReport,
)
from tetraspark.site.keypath import dotted
from tetraspark.site.source import LARGEST_DATA, read_bytes

MAKE = "measure with --out FILE"
WRITTEN_BY = "a report that `tetraspark bench …`, `needle`, `soak` or `quality` wrote"
BY_SUITE: dict[str, type[Part]] = {
    "decode": DecodeReport,
    "prefill": PrefillReport,
    "needle": NeedleReport,
    "soak": SoakReport,
    "quality": QualityReport,
}
BY_KEYS: dict[frozenset[str], tuple[str, type[Part]]] = {
    frozenset(("bench", "rows", "about")): ("collectives", CollectivesReport),
    frozenset(("samples", "max_tokens", "ranks")): ("transport", TransportReport),
    frozenset(("samples", "median_floor", "ranks")): ("start", StartReport),
}
"""Reports that do not name their suite, by keys that no other has. All are of one machine."""


@dataclass(frozen=True)
class Source:
    """A report that was read: its file, what it is, and the SHA-256 of its bytes."""

    path: Path
    sha256: str
    suite: str
    report: Part

    @property
    def about(self) -> AboutSaid | None:
        """What the report says of itself, where it has that."""
        found = getattr(self.report, "about", None)
        return found if isinstance(found, AboutSaid) else None

    @property
    def hardware_class(self) -> HardwareClass:
        """What the numbers are of; suites that know one machine only are of a stand-in."""
        return self.about.hardware_class if self.about else "stand-in"


def read_report(path: Path) -> Source:
    """Read one report. Raises UsageError that names the file, and the key where it is one."""
    data = read_bytes(path, MAKE, WRITTEN_BY, LARGEST_DATA)
    suite, model = _model(path, data)
    try:
        report = model.model_validate_json(data)
    except ValidationError as error:
        raise UsageError(*_problems(path, suite, error)) from error
    return Source(path, hashlib.sha256(data).hexdigest(), suite, report)


def _model(path: Path, data: bytes) -> tuple[str, type[Part]]:
    """Return the name and the model of the suite that wrote these bytes."""
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise _refusal(path, "JSON that is nested too deep") from error
    except ValueError as error:
        raise _refusal(path, f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _refusal(path, f"JSON that is a {type(found).__name__}, not an object")
    return _suite(path, found)


def _suite(path: Path, found: dict[str, Any]) -> tuple[str, type[Part]]:
    about = found.get("about")
    if isinstance(about, dict) and "suite" in about:
        name = about["suite"]
        if not isinstance(name, str) or name not in BY_SUITE:
            wanted = f"one of {', '.join(BY_SUITE)}"
            raise UsageError(
                Problem(f"{path}: about.suite", repr(name)[:100], wanted, "leave the file out")
            )
        return name, BY_SUITE[name]
    for keys, suite in BY_KEYS.items():
        if keys <= found.keys():
            return suite
    raise _refusal(path, "neither about.suite nor the keys of a suite that has none")


def _problems(path: Path, suite: str, error: ValidationError) -> list[Problem]:
    """Return one problem for each key that is not as the suite writes it; at most five."""
    return [
        Problem(
            where=f"{path}: {dotted(one['loc']) or 'the whole'}",
            seen=f"{one['msg']}: {one['input']!r}"[:200],
            wanted=f"what `{suite}` writes there",
            fix="measure again, with --out FILE; a report is not to be edited",
        )
        for one in error.errors()[:5]
    ]


def _refusal(path: Path, seen: str) -> UsageError:
    return UsageError(Problem(str(path), seen, WRITTEN_BY, MAKE))
