"""The finish reason of a loop, and what the detokenizer must not do with it."""

from collections.abc import Callable
from typing import Any

from tetraspark.engine.guard_loop import Loop

MARK = "repeated"
"""Key of the finish reason that only a loop has."""


def finish_repetition(loop: Loop) -> Any:
    """Return the engine's finish reason of a request that was ended as a loop.

    Clients see `finish_reason` "stop" and `matched_stop` "repetition"; `/generate` sees all of it.
    """
    from sglang.srt.managers.schedule_batch import FINISH_MATCHED_STR

    class FinishRepetition(FINISH_MATCHED_STR):  # type: ignore[misc]  # the engine is untyped
        def to_json(self) -> dict[str, Any]:
            found = {"period": loop.period, "copies": loop.copies}
            return {"type": "stop", "matched": self.matched, MARK: found}

    return FinishRepetition(matched="repetition")


def around_trim(
    original: Callable[..., Any], manager: Any, output: Any, finished_reason: Any, *rest: Any
) -> Any:
    """AROUND `DetokenizerManager.trim_matched_stop`: the reason's name is not in the text.

    The engine would take it for a stop string, and cut a text that speaks of repetition there.
    """
    if finished_reason and MARK in finished_reason:
        return output
    return original(manager, output, finished_reason, *rest)
