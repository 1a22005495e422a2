"""The receipt of a qualification: what ran, what came of it, and what it is bound to."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints, ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.measure.about import HardwareClass
from tetraspark.measure.qualification.sequence import Outcome, Verdict
from tetraspark.measure.qualification.versions import Versions
from tetraspark.receipts.sealed import Hash, Kept, Sealed
from tetraspark.site.keypath import dotted
from tetraspark.site.source import LARGEST_DATA, read_bytes

NAME = "receipt.json"
GOOD: tuple[Verdict, ...] = ("passed", "not for this line")
FileName = Annotated[str, StringConstraints(pattern=r"^[0-9]{2}-[a-z]+\.json$")]


class KeptStep(Kept):
    """An outcome; see `sequence.Outcome`."""

    name: str
    command: str
    verdict: Verdict
    why: str
    exit_code: int | None
    seconds: float | None
    report: FileName | None
    sha256: Hash | None


class KeptNode(Kept):
    """Versions of a node; see `versions.Versions`."""

    node: str
    kernel: str | None
    driver: str | None
    board: str | None
    nics: dict[str, str] | None
    error: str | None


class Receipt(Sealed):
    """One qualification. `revision` is tetraspark's."""

    qualification: Literal[1] = 1
    passed: bool
    profile: Literal["quick", "full"]
    began: str
    ended: str
    line: str
    hardware_class: HardwareClass
    site_sha256: Hash
    tetraspark: str
    revision: str
    nodes: tuple[KeptNode, ...]
    steps: tuple[KeptStep, ...]


def write_receipt(
    folder: Path, outcomes: Sequence[Outcome], nodes: Sequence[Versions], **bound: Any
) -> Receipt:
    """Write the receipt beside the reports, and return it.

    `bound` are the fields of Receipt that outcomes and nodes do not tell.
    """
    receipt = Receipt(
        passed=all(one.verdict in GOOD for one in outcomes),
        nodes=tuple(KeptNode.model_validate(one.as_dict()) for one in nodes),
        steps=tuple(KeptStep.model_validate(one.as_dict()) for one in outcomes),
        **bound,
    ).sealed()
    (folder / NAME).write_text(receipt.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return receipt


def read_receipt(file: Path) -> Receipt:
    """Read a receipt. Raises UsageError for a file that is none, with the key that is wrong."""
    fix = f"the {NAME} that `tetraspark qualify run` wrote"
    try:
        return Receipt.model_validate_json(read_bytes(file, fix, "a receipt", LARGEST_DATA))
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{file}: {dotted(first['loc'])}" if first["loc"] else str(file)
        raise UsageError(Problem(where, first["msg"], "a receipt", fix)) from error


def check_receipt(file: Path) -> tuple[Receipt, list[Problem]]:
    """Return a receipt, and everything in or beside it that is not as it was written."""
    receipt = read_receipt(file)
    fix = "ask for the whole folder again, or qualify again"
    found = []
    if receipt.seal() != receipt.sha256:
        found.append(Problem(f"{file}: sha256", receipt.seal(), receipt.sha256 or "a seal", fix))
    if receipt.passed != all(one.verdict in GOOD for one in receipt.steps):
        seen = f"passed is {receipt.passed}, which its steps do not bear out"
        found.append(Problem(f"{file}: passed", seen, "what the steps say", fix))
    for one in receipt.steps:
        found += _wrong(file.parent, one, fix)
    return receipt, found


def _wrong(folder: Path, step: KeptStep, fix: str) -> list[Problem]:
    """Return what is wrong with the report of a step."""
    if step.report is None:
        if step.verdict in ("not run", "not for this line"):
            return []
        return [Problem(f"step {step.name}", f"{step.verdict}, without a report", "one", fix)]
    file = folder / step.report
    try:
        data = read_bytes(file, fix, "the report", LARGEST_DATA)
    except UsageError as error:
        return list(error.problems)
    seen = hashlib.sha256(data).hexdigest()
    if seen != step.sha256:
        return [Problem(str(file), f"SHA-256 {seen}", f"SHA-256 {step.sha256}", fix)]
    return []
