"""Real ranks of a split step: forked from the lab, gathering over shared memory."""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from tests.engine.batch import LAYERS, Batch, Shape, backends
from tests.engine.kernels import no_scores, stand_ins
from tetraspark.collectives.group import Group
from tetraspark.engine import prefill_scope, prefill_split, receipts
from tetraspark.engine.split_env import MIN_CONTEXT, MIN_ROWS

PLANNED = {MIN_CONTEXT: "32768", MIN_ROWS: "1024"}


class EngineGroup:
    """Our group of ranks with the face of the engine's; notes what it carries."""

    def __init__(self, group: Group | None) -> None:
        self._group = group
        self.rank_in_group = group.rank if group else 0
        self.world_size = group.world if group else 1
        self.dtypes: list[str] = []

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        assert self._group is not None
        assert self._group.fits_gather(input_.nbytes)
        self.dtypes.append(str(input_.dtype))
        return self._group.all_gather(input_, dim=dim)


@dataclass(frozen=True)
class Step:
    """One forward of the attention backend, and what may keep it from being split.

    `scored` False: the full top-k layer alone, with nothing computed.
    """

    shape: Shape
    scored: bool = True
    draft: bool = False
    capturing: bool = False
    context_parallel: bool = False
    planned: bool = True


@contextmanager
def surroundings(step: Step, group: EngineGroup) -> Any:
    capture = "sglang.srt.model_executor.runner_utils.capture_mode.get_is_capture_mode"
    with (
        mock.patch.object(prefill_scope, "attention_group", lambda: group),
        mock.patch.dict(os.environ, PLANNED if step.planned else {}),
        mock.patch(capture, lambda: step.capturing),
    ):
        yield


def run(group: Group | None, step: Step) -> dict[str, Any]:
    """Run every index layer through the engine's attention backend; the call of a rank."""
    ours, batch = EngineGroup(group), Batch.make(step.shape)
    printed: list[dict[str, Any]] = []
    emit = mock.patch.object(receipts, "emit", lambda kind, **rest: printed.append(rest))
    first = mock.patch.object(prefill_split, "_first_split", True)
    kernels = stand_ins() if step.scored else no_scores()
    with kernels as record, surroundings(step, ours), emit, first:
        selected = forward(batch, step)
    return {
        "selected": {name: tensor.numpy().tobytes() for name, tensor in selected.items()},
        "dtypes": ours.dtypes,
        "tiles": record.tiles,
        "receipts": printed,
    }


def forward(batch: Batch, step: Step) -> dict[str, torch.Tensor]:
    """Call the real `_low_ratio_index_topk` of the backend for each layer."""
    from sglang.srt.layers.attention.deepseek_v4_backend import DeepseekV4AttnBackend
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    full, dense = backends(batch)
    core = SimpleNamespace(page_table=torch.empty(0))
    backend = DeepseekV4AttnBackend.__new__(DeepseekV4AttnBackend)
    vars(backend).update(
        forward_metadata=SimpleNamespace(
            candidate_metadata=None, late_layer_tail=None, low_ratio_k_slots=None,
            low_ratio_index_plans={}, core_metadata=core,
        ),
        full_topk_indexer=full, prefill_candidates=dense, is_draft_runner=step.draft,
        req_to_token=batch.req_to_token, mega_attn=True,
    )  # fmt: skip
    selected = {}
    for layer in LAYERS if step.scored else LAYERS[:1]:
        inputs = batch.inputs(layer)
        vars(core).update(
            sparse_raw_indices=lambda ratio, inputs=inputs: inputs.out_raw_indices,
            sparse_page_indices=lambda ratio, inputs=inputs: inputs.out_page_indices,
        )
        inputs.indexer.is_candidate_source = layer == LAYERS[1]
        inputs.indexer.uses_candidates = layer == LAYERS[2]
        backend._low_ratio_index_topk(
            SimpleNamespace(
                indexer=inputs.indexer, layer_id=layer, compress_ratio=batch.shape.ratio,
                freqs_cis=inputs.freqs_cis,
            ),
            inputs.x,
            inputs.q_lora,
            inputs.req_rows,
            inputs.positions,
            SimpleNamespace(
                forward_mode=ForwardMode.EXTEND,
                extend_seq_lens_cpu=inputs.rows_per_request,
                extend_seq_lens=inputs.rows_per_request_device,
                seq_lens_cpu=torch.tensor(inputs.seq_lens_cpu),
                req_pool_indices=inputs.req_pool_indices,
            ),
            rows_per_request=inputs.rows_per_request if step.context_parallel else None,
        )  # fmt: skip
        selected[f"layer {layer} raw"] = inputs.out_raw_indices
        selected[f"layer {layer} pages"] = inputs.out_page_indices
    return selected
