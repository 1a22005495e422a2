"""Guards inside a scheduler: the cap on generated tokens, and the end of a loop.

Every rank sees the same requests and the same tokens, so all decide alike, as they do about the
end of a text.
"""

import logging
import os
from typing import Any

from tetraspark.engine import receipts
from tetraspark.engine.guard_env import GuardSettings, guard_settings
from tetraspark.engine.guard_loop import Loop, LoopDetector, LoopRules, rules_of
from tetraspark.engine.guard_request import cap_of

MATCHED = "repetition"
DETECTOR = "tetraspark_loop_detector"
"""Attribute of a request under which its detector is kept."""

logger = logging.getLogger(__name__)

_limits: GuardSettings | None = None
_rules: LoopRules | None = None
_ends_line: dict[int, bool] = {}
_speaks = False


def start(rank: int, world: int) -> None:
    """Take the limits of the plan, if it has some, and print the `guards` receipt."""
    global _speaks
    limits = use(guard_settings(os.environ))
    if limits is not None:
        _speaks = rank == 0
        receipts.emit("guards", rank=rank, world=world, settings=limits.variables())


def use(limits: GuardSettings | None) -> GuardSettings | None:
    """Take these limits for this process."""
    global _limits, _rules
    _limits = limits
    _rules = rules_of(limits) if limits is not None and limits.loop_abort else None
    return limits


def before_init_max_new_tokens(scheduler: Any, req: Any) -> None:
    """BEFORE `Scheduler.init_req_max_new_tokens`: the cap, whatever route a request took.

    The engine then lowers it to what context and memory leave.
    """
    if _limits is not None:
        params = req.sampling_params
        params.max_new_tokens = cap_of(params.max_new_tokens, _limits).tokens


def after_update_finish_state(result: None, req: Any, new_accepted_len: int = 1) -> None:
    """AFTER `Req.update_finish_state`: end a request that repeats itself.

    A request with `ignore_eos` asks to go on whatever comes, and does.
    """
    if _rules is None or req.finished() or req.sampling_params.ignore_eos:
        return
    detector = getattr(req, DETECTOR, None)
    if detector is None or detector.count > len(req.output_ids):
        detector = LoopDetector(_rules, lambda token: _is_line_end(req.tokenizer, token))
        setattr(req, DETECTOR, detector)
    for token in req.output_ids[detector.count :]:
        loop = detector.push(token)
        if loop is not None:
            _end(req, loop, detector.count)
            return


def _end(req: Any, loop: Loop, length: int) -> None:
    """Finish a request at the token that completed the loop, even within an accepted draft."""
    from tetraspark.engine.guard_finish import finish_repetition

    req.finished_reason = finish_repetition(loop)
    req.finished_len = length
    delattr(req, DETECTOR)
    if _speaks:
        logger.warning(
            "tetraspark guard: rid=%s finish_reason=stop matched=%s tokens=%d period=%d copies=%d",
            req.rid, MATCHED, length, loop.period, loop.copies,
        )  # fmt: skip


def _is_line_end(tokenizer: Any, token: int) -> bool:
    """Tell whether a token's text holds the end of a line; asked of the tokenizer once a token."""
    known = _ends_line.get(token)
    if known is None:
        known = tokenizer is not None and "\n" in tokenizer.decode([token])
        _ends_line[token] = known
    return known
