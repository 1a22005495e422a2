"""Stand-ins for the engine's CUDA kernels around the indexer, exact and row by row.

Scores are small integers, so fp32 holds them exactly whatever the order of the sums: a row's
scores cannot depend on the rows beside it. What the kernels leave undefined is filled with junk
that does depend on them, so that whoever reads it is found out.
"""

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

E2M1 = torch.tensor([0.0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
UNIT_SCALE = 0x7F7F7F7F
"""Four ue8m0 exponents of 2**0."""


class Record:
    """What the stand-ins were asked for."""

    def __init__(self) -> None:
        self.tiles: list[tuple[int, int]] = []
        self.schedules: list[tuple[int, int]] = []

    @property
    def most_logits_bytes(self) -> int:
        """Bytes of the largest tile, each row padded to 256 fp32 columns as DeepGEMM does."""
        return max((rows * (-(-width // 256) * 256) * 4 for rows, width in self.tiles), default=0)


def unpack(fp4: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return fp32 values [..., 128] of packed fp4 [..., 64] and packed ue8m0 scales [...]."""
    low, high = fp4.to(torch.int64) & 15, fp4.to(torch.int64) >> 4 & 15
    values = E2M1[torch.stack([low, high], dim=-1).flatten(-2)]
    shifts = torch.tensor([0, 8, 16, 24])
    exponents = (scales.to(torch.int64)[..., None] >> shifts & 255) - 127
    return values * torch.exp2(exponents.to(torch.float32)).repeat_interleave(32, dim=-1)


def scores(q: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return [rows, columns]: the sum over heads of weight * relu(q . k)."""
    rows, heads, _ = q.shape
    products = (q.flatten(0, 1) @ keys.T).relu_().unflatten(0, (rows, heads))
    return torch.einsum("rh,rhc->rc", weights, products)


def junk(rows: int, width: int) -> torch.Tensor:
    """Return high scores that differ with the shape of the tile and the row in it."""
    return (torch.arange(rows) * 3 + rows * 7 + width + 1_000_000).float()[:, None].repeat(1, width)


def flat_logits(record: Record) -> Any:
    def fp8_fp4_mqa_logits(
        q: Any, kv: Any, weights: Any, starts: Any, ends: Any, clean: Any, width: int,
        logits_dtype: torch.dtype,
    ) -> torch.Tensor:  # fmt: skip
        rows = q[0].shape[0]
        assert rows > 0
        assert logits_dtype == torch.float32
        record.tiles.append((rows, width))
        logits = junk(rows, width)
        queries, keys = unpack(*q), unpack(*kv)
        for start in starts.unique().tolist():
            mine = starts == start
            longest = int((ends[mine] - start).max())
            if longest > 0:
                found = scores(queries[mine], weights[mine], keys[start : start + longest])
                seen = torch.arange(longest)[None, :] < (ends[mine] - start)[:, None]
                logits[mine, :longest] = torch.where(seen, found, logits[mine, :longest])
        return logits

    return fp8_fp4_mqa_logits


def paged_logits(record: Record) -> Any:
    def fp8_fp4_paged_mqa_logits(
        q: Any, cache: Any, weights: Any, lens: Any, table: Any, schedule: Any, width: int,
        clean: Any, logits_dtype: torch.dtype,
    ) -> torch.Tensor:  # fmt: skip
        queries = unpack(*q).flatten(0, 1)
        rows, group = queries.shape[0], q[0].shape[1]
        assert schedule.tolist() == [rows, group], "a schedule of other rows"
        record.tiles.append((rows, width))
        page = cache.shape[1]
        raw = cache.reshape(cache.shape[0], -1)
        payload = raw[:, : page * 64].reshape(-1, 64).view(torch.int8)
        scale = raw[:, page * 64 :].contiguous().view(torch.int32).reshape(-1)
        logits = junk(rows, width)
        for row in range(rows):
            n = int(lens.reshape(-1)[row])
            position = torch.arange(n)
            slots = table[row // group][position // page].long() * page + position % page
            keys = unpack(payload[slots], scale[slots])
            logits[row, :n] = scores(queries[row : row + 1], weights[row : row + 1], keys)[0]
        return logits

    return fp8_fp4_paged_mqa_logits


def best(logits: torch.Tensor, lens: torch.Tensor, k: int) -> torch.Tensor:
    """Return [rows, k] positions of the k largest, -1 padded; the lower first among equals."""
    columns = torch.arange(logits.shape[1])
    # One integer that orders by score, then by position; scores are integers.
    keys = logits.clamp(-(2**30), 2**30).to(torch.int64).mul_(1 << 22).sub_(columns)
    keys.masked_fill_(columns >= lens.reshape(-1, 1), torch.iinfo(torch.int64).min)
    found = keys.topk(min(k, keys.shape[1]), dim=-1).indices
    found = torch.nn.functional.pad(found, (0, k - found.shape[1]), value=-1)
    return torch.where(torch.arange(k) < lens.reshape(-1, 1), found, -1)


def topk_ragged(logits: Any, lens: Any, *, out: torch.Tensor, offsets: torch.Tensor) -> None:
    found = best(logits, lens, out.shape[1])
    out.copy_(torch.where(found >= 0, found + offsets[:, None], -1))


def topk_paged(
    logits: Any, lens: Any, table: Any, out: torch.Tensor, page: int, plan: Any, raw: Any = None
) -> None:
    assert plan is None or plan.tolist() == lens.reshape(-1).tolist(), "a plan of other rows"
    found = best(logits, lens, out.shape[1])
    if table is not None:
        known = found.clamp_min(0)
        slots = table.gather(1, known // page).long() * page + known % page
        found = torch.where(found >= 0, slots, -1)
    out.copy_(found)


def block_maxima(logits: Any, lens: Any, topk: int = 0, *, out: torch.Tensor) -> torch.Tensor:
    columns = torch.arange(logits.shape[1])
    seen = torch.where(columns < lens[:, None], logits, -torch.inf)
    maxima = seen.unflatten(1, (-1, 8)).amax(2)
    out[:, : maxima.shape[1]] = maxima
    out.scatter_(1, (-(-lens[:, None] // 8) - 1).long(), torch.inf)
    return out


def slots_of_selection(raw: Any, starts: Any, k_slots: Any, out: torch.Tensor) -> None:
    columns = (raw.long() + starts[:, None]).clamp_min(0)
    out[: raw.shape[0]] = torch.where(raw >= 0, k_slots[columns], -1).to(torch.int32)


@contextmanager
def stand_ins() -> Iterator[Record]:
    """Put the stand-ins where the engine looks its kernels up; projections are the caller's."""
    record = Record()
    deep_gemm = types.ModuleType("deep_gemm")

    def schedule(lens: torch.Tensor, page: int, sms: int) -> torch.Tensor:
        record.schedules.append((lens.numel(), lens.shape[1]))
        return torch.tensor([lens.numel(), lens.shape[1]])

    vars(deep_gemm).update(
        fp8_fp4_mqa_logits=flat_logits(record),
        fp8_fp4_paged_mqa_logits=paged_logits(record),
        get_paged_mqa_logits_metadata=schedule,
        get_num_sms=lambda: 48,
    )
    v41 = "sglang.srt.layers.attention.dsv4.v41_indexer"
    ops = "sglang.kernels.ops.attention.dsv4"
    replaced = {
        f"{v41}.scoring.topk_ragged": topk_ragged,
        f"{v41}.dense_blocks.topk_ragged": topk_ragged,
        f"{v41}.scoring.flat_selection_slots": slots_of_selection,
        f"{v41}.scoring._index_q_and_weights": lambda *, indexer, **_: indexer.operands,
        f"{ops}.candidate_blocks.amax8_varlen": block_maxima,
        f"{ops}.candidate_blocks.plan_topk_v2": lambda lens: lens.reshape(-1),
        f"{ops}.candidate_blocks.topk_transform_paged_v2": topk_paged,
        f"{ops}.plan_topk_v2": lambda lens: lens.reshape(-1),
        "sglang.srt.layers.attention.dsv4.indexer.topk_transform_paged_v2": topk_paged,
    }
    with mock.patch.dict(sys.modules, {"deep_gemm": deep_gemm}):
        patches = [mock.patch(target, function) for target, function in replaced.items()]
        for patch in patches:
            patch.start()
        try:
            yield record
        finally:
            for patch in reversed(patches):
                patch.stop()


@contextmanager
def no_scores() -> Iterator[Record]:
    """As `stand_ins`, with the tiles of a full top-k recorded and neither made nor read."""

    def logits(q: Any, kv: Any, w: Any, s: Any, e: Any, c: Any, width: int, **_: Any) -> Any:
        record.tiles.append((q[0].shape[0], width))
        return torch.empty(0)

    topk = "sglang.srt.layers.attention.dsv4.v41_indexer.scoring.topk_ragged"
    with stand_ins() as record, mock.patch(topk, lambda *_, **__: None):
        vars(sys.modules["deep_gemm"])["fp8_fp4_mqa_logits"] = logits
        yield record
