"""What the lines of a rank's log mean: receipts, stages of the start, and fatal lines. Pure."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any


class Stage(IntEnum):
    """How far a rank's engine has come; later stages imply the earlier ones."""

    STARTED = 0
    CONFIGURED = 1
    JOINED = 2
    LOADING = 3
    LOADED = 4
    KV_CACHE = 5
    LISTENING = 6


# Texts of SGLang 0.5.23; a stage that is not seen is a start that times out with its last line.
STAGE_TEXTS = (
    ("server_args=", Stage.CONFIGURED),
    ("Init parallel ends", Stage.JOINED),
    ("Load weight begin", Stage.LOADING),
    ("Load weight end", Stage.LOADED),
    ("KV Cache is allocated", Stage.KV_CACHE),
    ("Uvicorn running on", Stage.LISTENING),
    ("Dummy health check server started", Stage.LISTENING),
)
TIMESTAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [A-Z0-9 ]+)?\]")
RAISED = re.compile(r"(?:[A-Za-z_][\w.]*\.)?\w*(?:Error|Exception|Exit|Interrupt)(?::|$)")
CHILD_ENDED = re.compile(
    r"terminated with -?[1-9]\d*$|died during initialization \(exit code: -?[1-9]"
)
USAGE = re.compile(r"[\w./ -]+: error: |ERROR:\s+\[Errno \d+\]")
CRASHED = re.compile(r"Segmentation fault|[Oo]ut of memory|core dumped")

# What the survivors print when a peer is gone: true, but never the cause.
PEER_LOST = re.compile(
    r"Connection (?:closed|reset) by peer|remote worker crashing|Broken pipe|recvBytes failed"
    r"|remote error|DistStoreError|DistNetworkError|clients joined|^SIGQUIT|^Received sigquit"
    r"|Timed out waiting .* (?:recv|send)|CollectiveError"
)
# What a failed group's ranks agreed on; see `collectives.failure`.
ROOT = re.compile(r"CollectiveError: .*?root cause: (?P<text>[a-z]+: rank (?P<rank>\d{1,9})\b.*)")


@dataclass(frozen=True)
class Line:
    """One line of a rank's log. `time` is Unix seconds, of the line or of the last one before.

    `root` is the rank that a survivor's collective names as the cause, with its words.
    """

    rank: int
    text: str
    time: float
    receipt: dict[str, Any] | None = None
    stage: Stage | None = None
    fatal: bool = False
    peer_lost: bool = False
    root: tuple[int, str] | None = None


def parse(
    rank: int, texts: Iterable[str | tuple[str, float | None]], since: float = 0.0
) -> list[Line]:
    """Read log lines of one rank, in order; blank lines are passed over.

    A line may come with the time it was written, which counts more than its own stamp.
    """
    lines = []
    time = since
    for one in texts:
        text, written = (one, None) if isinstance(one, str) else one
        if text.strip():
            time = written or timestamp(text) or time
            lines.append(_read(rank, text.rstrip(), time))
    return lines


def timestamp(text: str) -> float | None:
    """Return the Unix time that a line begins with, in this machine's zone, or None."""
    match = TIMESTAMP.match(text)
    if match is None:
        return None
    try:
        return datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").timestamp()
    except (ValueError, OverflowError):
        return None


def _read(rank: int, text: str, time: float) -> Line:
    receipt = read_receipt(text)
    if receipt is not None:
        return Line(rank, text, time, receipt, fatal=receipt["tetraspark"] == "refused")
    if text[:1].isspace():
        # Within a traceback: what the source says is not what happened.
        return Line(rank, text, time)
    stage = next((stage for mark, stage in STAGE_TEXTS if mark in text), None)
    message = TIMESTAMP.sub("", text, count=1).strip()
    peer_lost = stage is None and bool(PEER_LOST.search(message))
    # The end of a pipe says that somebody died, and nothing about who or why.
    nothing_said = message == "EOFError"
    ended = not nothing_said and (
        RAISED.match(message)
        or CHILD_ENDED.search(message)
        or CRASHED.search(message)
        or USAGE.match(message)
    )
    fatal = peer_lost or (not stage and bool(ended))
    named = ROOT.search(message)
    root = (int(named["rank"]), named["text"]) if named else None
    return Line(rank, text, time, None, stage, fatal, peer_lost, root)


def read_receipt(text: str) -> dict[str, Any] | None:
    """Return the receipt that a line holds, or None for any other line."""
    if not text.startswith('{"tetraspark": '):
        return None
    try:
        receipt = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return receipt if isinstance(receipt, dict) else None
