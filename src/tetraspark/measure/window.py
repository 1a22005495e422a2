"""The time in which all streams of a cell decode, and what may be counted in it. Pure."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tetraspark.measure.stream import Trace

TEMPLATE_TOKENS = 16
"""Tokens of a chat template that begin every request alike: these a server may have cached."""
MIN_SHARE = 0.3
"""A common window shorter than this share of the longest stream says little about the rest."""
MIN_SENT_SHARE = 0.25
"""A window shorter than this share of the time since sending opens when most was made already."""
BURST_SHARE = 0.6
"""More than this share of a window's tokens in a tenth of its time is a burst, and no decoding."""
MIN_TOKENS = 8
"""Tokens a stream must bring within the window."""


@dataclass(frozen=True)
class Window:
    """From the last stream's first piece to the first stream's last piece; `tokens` came in it."""

    seconds: float
    tokens: float

    @property
    def rate(self) -> float:
        """Tokens a second of all streams together."""
        return self.tokens / self.seconds


def common_window(traces: Sequence[Trace]) -> Window | None:
    """Return the window in which all streams decode, or None when there is none.

    The pieces that open it are not counted: they were made before it.
    """
    firsts = [trace.first for trace in traces if trace.first is not None]
    lasts = [trace.last for trace in traces if trace.last is not None]
    if len(firsts) < len(traces) or not traces or min(lasts) <= max(firsts):
        return None
    begin, end = max(firsts), min(lasts)
    tokens = sum(trace.tokens_at(end) - trace.tokens_at(begin) for trace in traces)
    return Window(end - begin, tokens)


def peak_running(traces: Sequence[Trace]) -> int:
    """Return how many streams were between their first and last piece at once, at most."""
    edges = [
        edge
        for trace in traces
        if trace.first is not None and trace.last is not None
        for edge in ((trace.first, 1), (trace.last, -1))
    ]
    running = peak = 0
    for _, step in sorted(edges):
        running += step
        peak = max(peak, running)
    return peak


def faults(traces: Sequence[Trace], concurrency: int) -> list[str]:
    """Return every reason for which the numbers of a cell may not be believed."""
    found = [f"a request failed: {trace.error}" for trace in traces if trace.error][:1]
    if any(not trace.pieces and not trace.error for trace in traces):
        found.append("a request brought no first token")
    if any(trace.completion_tokens is None for trace in traces if not trace.error):
        found.append("the server told no usage, and pieces are not tokens")
    found += list(dict.fromkeys(fault for trace in traces for fault in _contradictions(trace)))[:1]
    cached = max((trace.cached_tokens or 0 for trace in traces), default=0)
    if cached > TEMPLATE_TOKENS:
        found.append(f"{cached} tokens of a prompt came out of the prefix cache")
    peak = peak_running(traces)
    if peak < concurrency:
        found.append(f"at most {peak} of {concurrency} requests ran at once")
    window = common_window(traces)
    if window is None:
        found.append("no moment in which all requests decoded")
    elif window.seconds < MIN_SHARE * max(_length(trace) for trace in traces):
        found.append(f"all requests decoded together for {window.seconds:.2f} s only")
    else:
        found += _hurried(traces, window)
    return found


def _hurried(traces: Sequence[Trace], window: Window) -> list[str]:
    """Return why a window shows how pieces were sent, and not how tokens were made."""
    waited = min(trace.last or 0.0 for trace in traces) - min(trace.sent for trace in traces)
    if window.seconds < MIN_SENT_SHARE * waited:
        return [f"the pieces came all at once: {window.seconds:.2f} of {waited:.2f} s"]
    if window.tokens < MIN_TOKENS * len(traces):
        return [
            f"{window.tokens:.0f} tokens in the common window, "
            f"where {MIN_TOKENS * len(traces)} say something"
        ]
    burst = _largest_burst(traces, window)
    if burst > BURST_SHARE * window.tokens:
        return [
            f"the pieces came all at once: {burst:.0f} of {window.tokens:.0f} tokens "
            f"within {window.seconds / 10:.2f} of {window.seconds:.2f} s"
        ]
    return []


def _largest_burst(traces: Sequence[Trace], window: Window) -> float:
    begin = max(trace.first or 0.0 for trace in traces)
    counts = [
        sum(trace.tokens_at(begin + tenth * window.seconds / 10) for trace in traces)
        for tenth in range(10)
    ]
    last = counts[0] + window.tokens
    return max(after - before for before, after in itertools.pairwise([*counts, last]))


def _contradictions(trace: Trace) -> list[str]:
    """Return where the counts that came with pieces do not fit the last one."""
    counts = [piece.tokens for piece in trace.pieces if piece.tokens is not None]
    total = trace.completion_tokens
    if not counts or total is None:
        return []
    if any(after < before for before, after in itertools.pairwise([*counts, total])):
        return ["the server's count of tokens went down within an answer"]
    # The end of an answer, and text that is held back, are tokens without a piece.
    if total - counts[-1] > max(MIN_TOKENS, total / 4):
        return [f"the server counted {counts[-1]} tokens with the last piece, and {total} then"]
    return []


def _length(trace: Trace) -> float:
    return 0.0 if trace.first is None or trace.last is None else trace.last - trace.first
