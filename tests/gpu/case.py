"""Runs named cases and prints one JSON line for each."""

import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence

import torch

Case = tuple[str, Callable[[], None]]


class Wrong(AssertionError):
    """A case found something else than it wanted."""


def want(truth: bool, words: str) -> None:
    """Raise Wrong unless true."""
    if not truth:
        raise Wrong(words)


def run_cases(cases: Sequence[Case], words: Sequence[str]) -> int:
    """Run the cases whose name contains one of `words`, all without words; the exit code."""
    if not torch.cuda.is_available():
        print("FAIL no CUDA device: torch sees none")
        return 1
    chosen = [one for one in cases if not words or any(word in one[0] for word in words)]
    failed = 0
    for name, case in chosen:
        start, why = time.monotonic(), ""
        try:
            case()
        except Exception as error:
            failed += 1
            why = f"{type(error).__name__}: {error}"
            if not isinstance(error, Wrong):
                traceback.print_exc(limit=4, file=sys.stderr)
        took = round(time.monotonic() - start, 2)
        print(json.dumps({"check": name, "ok": not why, "s": took, "why": why}), flush=True)
    print(f"# {len(chosen) - failed} of {len(chosen)} passed", flush=True)
    return 1 if failed or not chosen else 0
