"""Fuzz for longer than CI does: `python -m tests.fuzz.run --minutes 10`.

Every parser and record in turn, each round with other examples, until the time is over. Ends
with 1 at the first fault, and prints what was given and what was raised.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from itertools import cycle

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
    for done, (name, task) in enumerate(cycle(tasks), 1):
        if _failed(name, task):
            return 1
        print(f"{done} runs of {EXAMPLES} examples, the last of: {name}", flush=True)
        if time.monotonic() >= until:
            break
    return 0


def _failed(name: str, task: Callable[[], None]) -> bool:
    try:
        task()
    except Exception:  # whatever a target raises is the finding
        print(f"{name}:\n{traceback.format_exc()}", file=sys.stderr)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
