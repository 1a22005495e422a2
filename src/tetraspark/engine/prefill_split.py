"""The prefill split: each rank scores its slice of the query rows, and int32 ids are gathered.

The slice is taken after the engine has projected and quantised all rows: those matrix products
choose their algorithm by the number of rows, so projecting a slice could change bits.
"""

from collections.abc import Callable
from typing import Any

import torch

from tetraspark.engine import local_blocks, receipts
from tetraspark.engine.prefill_scope import SCOPE, Scope
from tetraspark.engine.row_partition import Partition

Operands = tuple[torch.Tensor, torch.Tensor]
"""Index keys of all columns: [columns, 64] int8 and [columns] int32."""

_first_split = True


def around_full_topk(
    original: Callable[..., None], data: Any, kv: Operands, *, out: torch.Tensor
) -> None:
    """AROUND `dense_prefill_topk`: fill `out`, [rows, topk] int32, from all ranks' slices."""
    scope, partition = _split(data)
    if scope is None or partition is None:
        return original(data, kv, out=out)
    shard = _empty(out, partition)
    original(own_rows(data, partition), kv, out=shard[: partition.end - partition.begin])
    out.copy_(_gathered(shard, scope, partition))
    return None


def around_publish(
    original: Callable[..., tuple[torch.Tensor, torch.Tensor]], *, data: Any, **rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """AROUND `_publish_prefill_blocks`: the top-k of all rows, and the block ids of own rows.

    Both int32: [rows, topk] and [own rows, blocks].
    """
    scope, partition = _split(data)
    if scope is None or partition is None:
        return original(data=data, **rest)
    own, blocks = original(data=own_rows(data, partition), **rest)
    local_blocks.keep(blocks, partition, scope.group)
    return _gathered(_filled(own, partition), scope, partition), blocks


def around_consume(
    original: Callable[..., torch.Tensor], *, data: Any, blocks: torch.Tensor, **rest: Any
) -> torch.Tensor:
    """AROUND `_consume_prefill_blocks`: return the top-k of all rows, [rows, topk] int32."""
    scope, partition = _split(data)
    if scope is None or partition is None:
        return original(data=data, blocks=local_blocks.all_rows(blocks), **rest)
    published = local_blocks.origin_of(blocks)
    if published is None or published.partition != partition:
        blocks = local_blocks.all_rows(blocks)[partition.own]
    own = original(data=own_rows(data, partition), blocks=blocks, **rest)
    return _gathered(_filled(own, partition), scope, partition)


def around_tail(original: Callable[..., Any], published: Any, rows_per_request: list[int]) -> Any:
    """AROUND `BlockIds.tail`: gather the rows that the tail reads, and no others."""
    origin = local_blocks.origin_of(published.blocks)
    if origin is None:
        return original(published, rows_per_request)
    rows = list(local_blocks.tail_rows(published.rows_per_request, rows_per_request))
    blocks = local_blocks.gather_rows(published.blocks, origin, rows)
    return type(published)(blocks=blocks, rows_per_request=rows_per_request)


def own_rows(data: Any, partition: Partition) -> Any:
    """Return the engine's `DeepGEMMPrefillData` of one rank's rows.

    Keys and the lengths of the requests stay whole: they give every rank's tiles one width.
    """
    fields = {name: getattr(data, name) for name in data.__struct_fields__}
    for name in ("request_starts", "compress_lens", "q_fp4", "q_sf", "weights"):
        fields[name] = fields[name][partition.own]
    fields["rows_per_request"] = partition.rows_per_request(data.rows_per_request)
    return type(data)(**fields)


def _split(data: Any) -> tuple[Scope | None, Partition | None]:
    scope = SCOPE.get()
    return scope, None if scope is None else scope.partition(data.num_rows)


def _empty(like: torch.Tensor, partition: Partition) -> torch.Tensor:
    """Return a shard of [extent, topk] int32, all -1: every rank sends the same shape."""
    return like.new_full((partition.extent, like.shape[1]), -1, dtype=torch.int32)


def _filled(own: torch.Tensor, partition: Partition) -> torch.Tensor:
    shard = _empty(own, partition)
    shard[: own.shape[0]] = own
    return shard


def _gathered(shard: torch.Tensor, scope: Scope, partition: Partition) -> torch.Tensor:
    whole = scope.group.all_gather(shard, dim=0)[: partition.rows]
    _print_receipt(scope, partition)
    return whole


def _print_receipt(scope: Scope, partition: Partition) -> None:
    """Print what the first split of this process was."""
    global _first_split
    if not _first_split:
        return
    _first_split = False
    receipts.emit(
        "prefill_split",
        rank=partition.rank,
        world=partition.world,
        rows=partition.rows,
        begin=partition.begin,
        end=partition.end,
        context=scope.context,
    )
