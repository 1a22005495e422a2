"""Do the collectives compute right on this machine's CPU? Seconds; `python3 -m ...`, exit code 1.

Two processes, each small size of both operations, compared bit by bit: a step of the image build.
"""

import sys

from tetraspark.errors import TetrasparkError
from tetraspark.measure.collectives import OURS, Bench, Op
from tetraspark.measure.collectives_run import measure

OPS: tuple[Op, ...] = ("all_reduce", "all_gather")
SMALLEST, LARGEST = 64, 16 << 10


def wrong_values(op: Op) -> tuple[int, int]:
    """Return how many values were wrong, of how many. Raises RunError when a rank failed."""
    bench = Bench(2, op, "bf16", SMALLEST, LARGEST, 1, "pull", False, "cpu", rounds=2, calls=2)
    samples = [row.samples[OURS] for row in measure(bench).rows]
    return sum(one.wrong for one in samples), sum(one.compared for one in samples)


def main() -> int:
    """Run both operations; return the process exit code."""
    failed = False
    for op in OPS:
        try:
            wrong, compared = wrong_values(op)
        except TetrasparkError as error:
            print(f"{op}: {error}", file=sys.stderr)
            return 1
        print(f"{op}: {wrong} of {compared} values wrong")
        failed |= wrong > 0 or not compared
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
