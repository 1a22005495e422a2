"""The receipt of a verified ring: bound to the plan, the cards, their firmware, the kernels."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, RunError
from tetraspark.ring.plan import canonical
from tetraspark.ring.view import Identity

VERSION = 1
FIX = "tetraspark ring verify PLAN"


@dataclass(frozen=True)
class Receipt:
    """What was verified, when (Unix seconds), on what, with every finding.

    `nodes` are by name; `traffic` names what the frames were sent with.
    """

    version: int
    plan: str
    time: float
    traffic: str
    nodes: Mapping[str, Identity]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed; what could not be seen is told, and does not count as passed."""
        return not any(one.verdict in ("failed", "unknown") for one in self.checks)

    @property
    def id(self) -> str:
        """SHA-256 of the canonical JSON of everything else."""
        return hashlib.sha256(canonical(_body(self)).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values, the ID first."""
        return {"id": self.id, "passed": self.passed, **_body(self)}

    def write(self, file: Path) -> None:
        """Write it as a whole."""
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(self.as_dict(), indent=1) + "\n", encoding="utf-8")
        part.replace(file)

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """Return the receipt of a file, None without a file.

        Raises RunError for one that is no receipt, or was changed by hand.
        """
        try:
            body = json.loads(file.read_text(encoding="utf-8"))
            told = body.pop("id")
            body.pop("passed")
            found = TypeAdapter(cls).validate_python(body)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            seen = f"no receipt: {type(error).__name__}"
            raise RunError(Problem(str(file), seen, "a receipt of `ring verify`", FIX)) from error
        if found.version != VERSION or found.id != told:
            seen = f"ID {told[:12]}, and content whose ID is {found.id[:12]}"
            raise RunError(Problem(str(file), seen, "a receipt as it was written", FIX))
        return found


def stale(receipt: Receipt, plan: str, nodes: Mapping[str, Identity]) -> tuple[str, ...]:
    """Return which parts of what a receipt is bound to have changed; none when it is fresh."""
    found = [] if receipt.plan == plan else [f"plan: was {receipt.plan[:12]}, is {plan[:12]}"]
    for node in sorted(receipt.nodes.keys() | nodes.keys()):
        before, now = receipt.nodes.get(node), nodes.get(node)
        if before is None or now is None:
            found.append(f"{node}: {'not verified' if before is None else 'not seen'}")
            continue
        old, new = asdict(before), asdict(now)
        found += [f"{node} {text}" for text in _changes(old, new)]
    return tuple(found)


def require_fresh(receipt: Receipt | None, plan: str, nodes: Mapping[str, Identity]) -> None:
    """Refuse to build on a ring that was not verified as it is now. Raises RunError."""
    wanted = f"a receipt of plan {plan[:12]} on these cards, firmware and kernels"
    if receipt is None:
        raise RunError(Problem("ring", "no receipt: it was never verified", wanted, FIX))
    changed = stale(receipt, plan, nodes)
    if changed:
        raise RunError(
            *(Problem(f"receipt {receipt.id[:12]}", one, wanted, FIX) for one in changed)
        )
    if not receipt.passed:
        bad = (one for one in receipt.checks if one.verdict in ("failed", "unknown"))
        raise RunError(*(one.problem for one in bad))


def receipt(
    plan: str, traffic: str, nodes: Mapping[str, Identity], checks: Iterable[Check]
) -> Receipt:
    """Return the receipt of what was just found."""
    return Receipt(VERSION, plan, time.time(), traffic, dict(nodes), tuple(checks))


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    if old["kernel"] != new["kernel"]:
        found = [f"kernel: was {old['kernel']}, is {new['kernel']}"]
    else:
        found = []
    for name in ("macs", "firmware"):
        for key in sorted(old[name].keys() | new[name].keys()):
            was, now = old[name].get(key), new[name].get(key)
            if was != now:
                found.append(f"{name} {key}: was {was}, is {now}")
    return found


def _body(found: Receipt) -> dict[str, Any]:
    body: dict[str, Any] = TypeAdapter(Receipt).dump_python(found, mode="json")
    return body
