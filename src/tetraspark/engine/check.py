"""Is the installed engine the one that the plugin's hooks were written for?

`python3 -m tetraspark.engine.check` needs nothing but the standard library, so it runs inside an
image too; nothing of the engine is imported.
"""

import sys

from tetraspark.engine.drift import Finding, inspect_all, package_root
from tetraspark.engine.hooks import TARGETS
from tetraspark.engine.receipts import engine_version


def check_engine() -> list[Finding] | None:
    """Return a finding for every place the plugin touches, or None without an engine."""
    root = package_root("sglang")
    return None if root is None else inspect_all(root, TARGETS)


def main() -> int:
    """Print what has changed; return the process exit code."""
    findings = check_engine()
    if findings is None:
        print("engine check: package sglang is not installed", file=sys.stderr)
        return 1
    drifted = [finding for finding in findings if finding.verdict != "found"]
    for finding in drifted:
        print(f"engine check: {finding}", file=sys.stderr)
    good = len(findings) - len(drifted)
    print(f"engine check: sglang {engine_version()}, {good} of {len(findings)} places as known")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())
