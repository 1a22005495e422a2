"""Receipts: one JSON line a rank prints when a feature is really active.

The launcher reads them from the rank's log, so each is written with a single system call: lines
of several processes that share the log never mix.
"""

import json
import os
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

KEY = "tetraspark"


def emit(kind: str, **fields: object) -> None:
    """Write one receipt line to stdout: `{"tetraspark": kind, "pid": ..., **fields}`."""
    line = json.dumps({KEY: kind, "pid": os.getpid(), **fields}, sort_keys=False)
    os.write(1, f"\n{line}\n".encode())


def engine_version() -> str:
    """Return the installed engine's version."""
    try:
        return version("sglang")
    except PackageNotFoundError:
        return "not installed"


def refuse(reasons: list[str]) -> NoReturn:
    """Print a `refused` receipt and end the process: SGLang swallows anything milder."""
    emit("refused", engine=engine_version(), reasons=reasons)
    raise SystemExit("tetraspark: refusing to boot: " + "; ".join(reasons))
