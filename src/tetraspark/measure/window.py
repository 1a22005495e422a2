"""The time in which all streams of a cell decode, and what may be counted in it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tetraspark.measure.stream import Trace

TEMPLATE_TOKENS = 16
"""Tokens of a chat template that begin every request alike: these a server may have cached."""
MIN_SHARE = 0.3
"""A common window shorter than this share of the longest stream says little about the rest."""


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
    if any(trace.completion_tokens is None for trace in traces if not trace.error):
        found.append("the server told no usage, and pieces are not tokens")
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
    elif window.tokens <= 0:
        found.append("no tokens in the common window")
    return found


def _length(trace: Trace) -> float:
    return 0.0 if trace.first is None or trace.last is None else trace.last - trace.first
