"""Fuzz for longer than CI does: `python -m tests.fuzz.run --minutes 10`.

Every parser and record in turn, each round with other examples, until the time is over. Ends
with 1 at the first fault, and prints what was given and what was raised.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable

from tests.fuzz.parsers import PARSERS
from tests.fuzz.records import RECORDS
from tests.fuzz.strive import fuzz_parser, fuzz_record

EXAMPLES = 200


def main() -> int:
    """Run rounds until the time is over; return the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=10.0)
    until = time.monotonic() + 60 * options.parse_args().minutes
    tasks: list[tuple[str, Callable[[], None]]] = [
        *((one.name, lambda one=one: fuzz_parser(one, EXAMPLES, fixed=False)) for one in PARSERS),
        *((one.name, lambda one=one: fuzz_record(one, EXAMPLES, fixed=False)) for one in RECORDS),
    ]
    rounds = faults = 0
    while time.monotonic() < until and not faults:
        for name, task in tasks:
            faults += _failed(name, task)
        rounds += 1
        print(f"round {rounds}: {len(tasks)} targets, {EXAMPLES} examples each", flush=True)
    return 1 if faults else 0


def _failed(name: str, task: Callable[[], None]) -> bool:
    try:
        task()
    except Exception:  # whatever a target raises is the finding
        print(f"{name}:\n{traceback.format_exc()}", file=sys.stderr)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
