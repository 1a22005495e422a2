"""Decode steps for the engine's indexer: a paged pool and the metadata of one forward."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from tests.engine.batch import fp4
from tests.engine.kernels import UNIT_SCALE, scores, unpack

PAGE = 64


@dataclass(frozen=True)
class Decode:
    """Rows of `group` per request; `lengths` are the compressed positions that each row sees."""

    lengths: tuple[int, ...]
    group: int = 1
    capacity: int = 512
    heads: int = 4
    topk: int = 8
    seed: int = 0

    @property
    def rows(self) -> int:
        return len(self.lengths)


class PagedPool:
    """One layer's index keys as the engine's pool holds them: 64 payloads, then 64 scales."""

    def __init__(self, pages: int, generator: torch.Generator) -> None:
        payload = fp4(pages * PAGE, 1, generator).view(torch.uint8).view(pages, PAGE * 64)
        scales = torch.full((pages, PAGE), UNIT_SCALE).int().view(torch.uint8)
        self.buffer = torch.cat([payload, scales], dim=1)

    def get_index_k_with_scale_buffer(self, layer: int) -> torch.Tensor:
        return self.buffer


def step(shape: Decode) -> tuple[PagedPool, Any]:
    """Return a pool and the `DecodeInputs` of a layer over it."""
    from sglang.srt.layers.attention.dsv4.v41_indexer.types import DecodeInputs

    generator = torch.Generator().manual_seed(shape.seed)
    requests, pages = shape.rows // shape.group, shape.capacity // PAGE
    pool = PagedPool(requests * pages, generator)
    table = torch.randperm(requests * pages, generator=generator).view(requests, pages).int()
    q = fp4(shape.rows, shape.heads, generator).unsqueeze(1)
    weights = torch.randint(-2, 4, (shape.rows, shape.heads), generator=generator).float()
    inputs = DecodeInputs(
        indexer=SimpleNamespace(
            index_topk=shape.topk,
            n_heads=shape.heads,
            n_local_heads=shape.heads,
            operands=(q[:, 0], torch.full((shape.rows, shape.heads), UNIT_SCALE).int(), weights),
        ),
        layer_id=20,
        compress_ratio=1,
        freqs_cis=torch.empty(0),
        x=torch.empty(shape.rows, 1),
        q_lora=torch.empty(shape.rows, 1),
        positions=torch.tensor(shape.lengths) - 1,
        req_rows=torch.arange(shape.rows) // shape.group,
        paged_metadata=metadata(shape, table.repeat_interleave(shape.group, dim=0)),
        is_verify=shape.group > 1,
        out_page_indices=torch.full((shape.rows, shape.topk), 1 << 30, dtype=torch.int32),
    )
    return pool, inputs


def metadata(shape: Decode, table: torch.Tensor) -> Any:
    """Return the engine's `PagedIndexerMetadata`, planned by DeepGEMM's (stood-in) scheduler."""
    from sglang.srt.layers.attention.dsv4.metadata import PagedIndexerMetadata

    return PagedIndexerMetadata(
        page_size=256,
        compressed_page_size=PAGE,
        page_table=table,
        compressed_seq_lens=torch.tensor(shape.lengths, dtype=torch.int32),
        use_topk_v2=True,
        force_deep_gemm_metadata=True,
        compress_ratio=1,
        rows_per_request=shape.group,
    )


def scored(pool: PagedPool, inputs: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return each row's scores and slots, by position, with a loop of its own."""
    q, sf, weights = inputs.indexer.operands
    payload = pool.buffer[:, : PAGE * 64].reshape(-1, 64).view(torch.int8)
    keys = unpack(payload, torch.full((payload.shape[0],), UNIT_SCALE))
    metadata, found = inputs.paged_metadata, []
    for row, length in enumerate(metadata.compressed_seq_lens.tolist()):
        position = torch.arange(length)
        slots = metadata.page_table[row][position // PAGE].long() * PAGE + position % PAGE
        own = unpack(q, sf)[row : row + 1]
        found.append((scores(own, weights[row : row + 1], keys[slots])[0], slots))
    return found


def naive(
    pool: PagedPool, inputs: Any, blocks: torch.Tensor | None = None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return each row's scores and slots from best to worst, among `blocks` if given."""
    found = []
    for row, (score, slots) in enumerate(scored(pool, inputs)):
        if blocks is not None:
            inside = torch.isin(torch.arange(len(score)) // 8, blocks[row].long())
            score, slots = score[inside], slots[inside]
        order = torch.sort(score, descending=True).indices
        found.append((score[order], slots[order]))
    return found


def assert_best(chosen: torch.Tensor, ranked: list[Any], topk: int) -> None:
    """Check rows of slots against (scores, slots) from best to worst; equal scores may swap."""
    for row, (score, slots) in zip(chosen.tolist(), ranked, strict=True):
        held = [slot for slot in row if slot != -1]
        assert len(held) == len(set(held)) == min(topk, len(slots))
        by_slot = dict(zip(slots.tolist(), score.tolist(), strict=True))
        assert sorted((by_slot[slot] for slot in held), reverse=True) == score[: len(held)].tolist()
