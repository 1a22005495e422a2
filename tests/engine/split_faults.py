"""What is wrong with a split step, beside the unsplit one of the same batch."""

import torch

from tests.engine.batch import UNWRITTEN, Batch, Shape, select
from tests.engine.kernels import stand_ins
from tests.engine.lockstep import in_lockstep

RAGGED = Shape(((700, 300), (0, 0), (90, 0), (1, 1), (260, 133), (64, 64), (501, 97)))
"""Requests over slice borders, an empty one, one without rows, one of a single token."""


def differing(got: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> list[str]:
    assert got.keys() == wanted.keys()
    return [name for name in wanted if not torch.equal(got[name], wanted[name])]


def faults(
    shape: Shape, world: int, tail: list[int] | None = None
) -> tuple[list[str], list[torch.Tensor]]:
    """Return what is wrong with a split step beside the unsplit one, and what was gathered."""
    with stand_ins() as record:
        batch = Batch.make(shape)
        wanted = select(batch, tail)
        widths = {width for _, width in record.tiles}
        record.tiles.clear()
        results, gathered = in_lockstep(world, lambda: select(batch, tail))
    found = [name for result in results for name in differing(result, wanted)]
    found += [f"width {width}" for _, width in record.tiles if width not in widths]
    for whole in gathered:
        if whole.dtype != torch.int32:
            found.append(f"{whole.dtype} travelled")
        if whole.shape[1] == shape.topk and bool((whole[shape.rows :] != -1).any()):
            found.append("padding other than -1")
    if any((selected == UNWRITTEN).any() for selected in wanted.values()):
        found.append("a row that nobody wrote")
    return found, gathered
