"""When a prefill step is split, decided only from values that are the same on every rank.

The functions that score rows see neither the context nor the mode of the forward they run in;
the hook here, around their common caller, decides and leaves the answer in a context variable.
"""

import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from tetraspark.engine.row_partition import Partition
from tetraspark.engine.split_env import SplitSettings, split_settings


class Gatherer(Protocol):
    """The part of the engine's `GroupCoordinator` that a split uses."""

    rank_in_group: int
    world_size: int

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Concatenate the ranks' tensors along `dim`."""


@dataclass(frozen=True)
class Forward:
    """What decides about a forward; every field is the same on all ranks of the group.

    `context` is the longest of its requests, in tokens; `world` the ranks that hold its rows.
    """

    extend: bool
    context: int
    world: int
    context_parallel: bool = False
    draft: bool = False
    capturing: bool = False

    def splits(self, settings: SplitSettings) -> bool:
        """Tell whether its layers may be split, whatever their number of rows."""
        return (
            self.extend
            and self.world > 1
            and not (self.context_parallel or self.draft or self.capturing)
            and self.context >= settings.min_context
        )


@dataclass(frozen=True)
class Scope:
    """A forward whose layers are split from `min_rows` rows on, and the group to gather in."""

    group: Gatherer
    min_rows: int
    context: int

    def partition(self, rows: int) -> Partition | None:
        """Return this rank's share of `rows`, or None where each rank scores all of them."""
        if rows < self.min_rows:
            return None
        return Partition(rows, self.group.world_size, self.group.rank_in_group)


SCOPE: ContextVar[Scope | None] = ContextVar("tetraspark_prefill_scope", default=None)


def around_index_topk(
    original: Callable[..., None],
    backend: Any,
    layer: Any,
    x: Any,
    q_lora: Any,
    req: Any,
    pos: Any,
    forward_batch: Any,
    *,
    rows_per_request: Any = None,
) -> None:
    """AROUND `DeepseekV4AttnBackend._low_ratio_index_topk`: open the scope for one layer."""
    arguments = (backend, layer, x, q_lora, req, pos, forward_batch)
    token = SCOPE.set(_scope(backend, forward_batch, rows_per_request is not None))
    try:
        original(*arguments, rows_per_request=rows_per_request)
    finally:
        SCOPE.reset(token)


def _scope(backend: Any, forward_batch: Any, context_parallel: bool) -> Scope | None:
    settings = split_settings(os.environ)
    if settings is None:
        return None
    group = attention_group()
    forward = forward_of(backend, forward_batch, group.world_size, context_parallel)
    if not forward.splits(settings):
        return None
    return Scope(group, settings.min_rows, forward.context)


def forward_of(backend: Any, batch: Any, world: int, context_parallel: bool) -> Forward:
    """Describe a forward of the engine; reads host values only."""
    mode = batch.forward_mode
    lengths = batch.seq_lens_cpu
    return Forward(
        extend=not (mode.is_decode() or mode.is_target_verify() or mode.is_idle()),
        context=0 if lengths is None else max((int(one) for one in lengths), default=0),
        world=world,
        context_parallel=context_parallel,
        draft=backend.is_draft_runner,
        capturing=_capturing(),
    )


def attention_group() -> Gatherer:
    """Return the ranks that share a batch: the engine's attention tensor-parallel group."""
    from sglang.srt.runtime_context import get_parallel

    group: Gatherer = get_parallel().attn_tp_group
    return group


def _capturing() -> bool:
    from sglang.srt.model_executor.runner_utils.capture_mode import get_is_capture_mode

    if get_is_capture_mode():
        return True
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
