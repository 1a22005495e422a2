"""A folded accept is copied before the next replay of its graph can overwrite it.

With DSpark the verify graph accepts draft tokens in the graph and hands out views of its own
buffers. The scheduler reads them back on another stream, and nothing makes the next replay wait
for that copy. A copy made here, on the stream of the graph, is ordered before the next replay;
the engine already keeps a tensor alive for as long as its other stream reads it.

The engine tells by identity whether its graph has published lengths and bonus tokens: whoever
asks got both sides from the value returned here, so a copy keeps that true.
"""

from typing import Any

from tetraspark.engine import receipts

_told = False


def after_accept(result: Any, executor: Any, *, folded_accept: bool, **named: Any) -> Any:
    """AFTER `TargetVerifyExecutor.accept_and_finalize`: own tensors, where it was folded.

    Returns an `AcceptOuts` of copies, or None, which leaves the eager result as it is.
    """
    return _copied(result, "verify") if folded_accept else None


def after_sampled_accept(result: Any, graph: Any, **named: Any) -> Any:
    """AFTER `DsparkSamplingAcceptGraph.run`, whose accept does not pass `accept_and_finalize`.

    `result` is None when the step takes the eager path.
    """
    return _copied(result, "sampled accept") if result is not None else None


def after_block_lengths(result: Any, worker: Any, *, folded_accept: bool, **named: Any) -> Any:
    """AFTER `DSparkWorkerV2._block_accept_lens`, (requests,) int32: the graph's buffer, copied."""
    return result.clone() if folded_accept else None


def _copied(accept: Any, graph: str) -> Any:
    global _told
    if not _told:
        _told = True
        receipts.emit("folded_fence", graph=graph, requests=accept.bonus.shape[0])
    return type(accept)(
        **{name: getattr(accept, name).clone() for name in accept.__struct_fields__}
    )
