"""`python -m tests.rdma.rival`: our proxy and b12x's in one VM, on the same lanes; a table."""

import json
import os
import sys

from tests.rdma.rival.contest import SIZES
from tests.rdma.rival.package import fetch, folder, load
from tests.rdma.rival.theirs import OPERATION
from tests.rdma.vm.machine import run
from tetraspark.collectives.build import build
from tetraspark.collectives.library import proxy
from tetraspark.collectives.verbs_native import verbs

LIMIT_S = 900
COLUMNS = "{:>5} {:>5} {:>8} {:>12} {:>12} {:>7}"


def main() -> int:
    """Build both here, run them there."""
    fetch()
    os.environ["B12X_ROCE_CACHE_DIR"] = str(folder())
    proxy(), verbs(), build(OPERATION), load().load()
    inside = f"B12X_ROCE_CACHE_DIR={folder()} {sys.executable} -m tests.rdma.rival.contest 2x2 4x2"
    done = run("switch 4 2", inside, LIMIT_S)
    if done.status:
        print(done.output, file=sys.stderr)
        return 1
    print(COLUMNS.format("world", "rails", "bytes", "ours, us", "b12x, us", "ratio"))
    found = json.loads(done.output.strip().splitlines()[-1])
    for one in found:
        ours, theirs = one["tetraspark"], one["b12x 1.5.1"]
        for size in SIZES:
            pair = ours["us"][str(size)], theirs["us"][str(size)]
            times = (f"{pair[0]:.0f}", f"{pair[1]:.0f}", f"{pair[0] / pair[1]:.2f}")
            print(COLUMNS.format(one["world"], one["rails"], size, *times))
    for one in found:
        for name in ("tetraspark", "b12x 1.5.1"):
            counts = {key: round(one[name][key], 2) for key in one[name] if key != "us"}
            print(f"world {one['world']}, {name}, a rank: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
