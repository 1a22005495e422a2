"""What a rank of `rank_processes` leaves behind."""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def leave(run: Callable[[Path, int], dict[str, Any]]) -> int:
    """Run with the folder and the rank of the arguments, leave the result; returns the exit code.

    The result is a file, since libraries write to stdout as they like.
    """
    folder, rank = Path(sys.argv[1]), int(sys.argv[2])
    try:
        found, code = run(folder, rank), 0
    except Exception as error:
        traceback.print_exc()
        found, code = {"error": f"{type(error).__name__}: {error}"}, 1
    partial = folder / f"partial-{rank}"
    partial.write_text(json.dumps(found))
    partial.rename(folder / f"result-{rank}.json")
    return code
