"""Whether an engine is the one that the plugin was written for, as a value.

`python3 -m tetraspark.engine.check` looks at the installed engine with nothing but the standard
library, so that it runs inside an image.
"""

import sys
from dataclasses import dataclass
from typing import Any

from tetraspark.engine.drift import Finding, inspect_all
from tetraspark.engine.hooks import HOOKS, TARGETS
from tetraspark.engine.pins import Pin, read_pins
from tetraspark.engine.tree import PACKAGE, Tree, TreeError, open_tree

_USES = {hook.target: hook.type for hook in HOOKS}


@dataclass(frozen=True)
class EngineReport:
    """An engine: where it is, every target of the plugin in it, and the pins beside it."""

    where: str
    findings: tuple[Finding, ...]
    pins: tuple[Pin, ...]

    @property
    def version(self) -> str:
        """The engine's version, "" when it cannot be told from its files."""
        return next(pin.asked for pin in self.pins if pin.package == PACKAGE)

    @property
    def ok(self) -> bool:
        """Tell whether nothing has drifted; what cannot be told is no drift."""
        found = all(finding.verdict == "found" for finding in self.findings)
        return found and all(pin.verdict != "differs" for pin in self.pins)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        return {
            "ok": self.ok,
            "engine": {"where": self.where, "version": self.version},
            "targets": [_target(finding) for finding in self.findings],
            "pins": [
                {"package": pin.package, "wanted": pin.wanted, "asked": pin.asked}
                | {"verdict": pin.verdict}
                for pin in self.pins
            ],
        }


def check_engine(tree: Tree) -> EngineReport:
    """Inspect every target and pin. Raises TreeError when the tree cannot be read."""
    return EngineReport(
        tree.where, tuple(inspect_all(tree, TARGETS)), tuple(read_pins(tree.metadata()))
    )


def use_of(finding: Finding) -> str:
    """Return how the plugin uses a target: the type of its hook, or "called"."""
    return _USES.get(finding.target, "called")


def _target(finding: Finding) -> dict[str, Any]:
    return {
        "target": finding.target.path,
        "use": use_of(finding),
        "verdict": finding.verdict,
        "sha256": finding.sha256,
        "accepted": finding.target.accepted,
        "places": finding.places,
        "adapter": finding.target.adapter,
    }


def main() -> int:
    """Print what has drifted in the installed engine; return the process exit code."""
    try:
        report = check_engine(open_tree(None))
    except TreeError as error:
        print(f"engine check: {PACKAGE}: {error}", file=sys.stderr)
        return 1
    drifted = [str(one) for one in report.findings if one.verdict != "found"]
    differing = [pin for pin in report.pins if pin.verdict == "differs"]
    drifted += [f"{pin.package} is {pin.asked}, written for {pin.wanted}" for pin in differing]
    for text in drifted:
        print(f"engine check: {text}", file=sys.stderr)
    good = sum(one.verdict == "found" for one in report.findings)
    version = report.version or "of unknown version"
    print(f"engine check: {PACKAGE} {version}, {good} of {len(report.findings)} places as known")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
