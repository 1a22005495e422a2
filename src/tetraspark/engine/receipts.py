"""Receipts: one JSON line a rank prints when a feature is really active.

The launcher reads them from the rank's log, so each is written with a single system call: lines
of several processes that share the log never mix.
"""

import json
import os

KEY = "tetraspark"


def emit(kind: str, **fields: object) -> None:
    """Write one receipt line to stdout: `{"tetraspark": kind, "pid": ..., **fields}`."""
    line = json.dumps({KEY: kind, "pid": os.getpid(), **fields}, sort_keys=False)
    os.write(1, f"\n{line}\n".encode())
