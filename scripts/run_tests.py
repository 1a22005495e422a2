"""Run the tests: first those that can share the machine, side by side, then those that cannot.

Usage: python scripts/run_tests.py [PYTEST_ARGUMENTS]. Both parts run, whatever the first says.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

NO_TESTS_COLLECTED = 5
"""Exit code of pytest when a part has none of the tests that were asked for."""


def beside() -> list[str]:
    """Return the arguments of pytest-xdist: a file is never split between workers.

    One worker more than cores: the tests on the four nodes wait more than they compute.
    """
    workers = len(os.sched_getaffinity(0)) + 1
    return ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]


def run(arguments: Sequence[str]) -> int:
    """Run pytest; return its exit code, 0 when it had no tests to run."""
    code = subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode
    return 0 if code == NO_TESTS_COLLECTED else code


def main(arguments: Sequence[str]) -> int:
    """Run both parts; return the first exit code that is not 0."""
    shared = run([*beside(), "-m", "not alone", *arguments])
    alone = run(["-m", "alone", *arguments])
    return shared or alone


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
