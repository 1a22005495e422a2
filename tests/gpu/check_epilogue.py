"""All-reduce, residual add and RMSNorm in one kernel, on one GPU. One JSON line a case.

Every row is compared bit for bit with the plain torch of norm_reference.py on this GPU, and with
the unfused path: `all_reduce`, then the add-and-norm kernel.

Run from the checkout: `python tests/gpu/check_epilogue.py [WORD]`. Exits 1 on a failed case.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.case import Case, run_cases, want
from tests.gpu.check_one_gpu import capture, roots
from tests.gpu.norm_reference import reference_norm
from tests.gpu.one_gpu import DEVICE, Ranks
from tests.gpu.unfused import add_norm, torch_norm
from tests.gpu.values import raw, summed
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_norms import epilogue

BF16 = torch.bfloat16
EPSILON = 1e-6
SETTINGS: dict[str, Any] = {
    "max_reduce_bytes": 2 << 20,
    "max_gather_bytes": 1 << 16,
    "late_limit_s": 15.0,
}
SHAPES = ((1, 5120), (6, 5120), (96, 5120), (3, 8), (5, 1536), (33, 7168), (2, 8200), (9, 16384))


def rows(seed: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Return hidden states of a plausible spread: CPU, bf16."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * 3).to(BF16)


class Inputs:
    """One operation's tensors on every rank, and what it must give."""

    def __init__(self, world: int, shape: tuple[int, int], seed: int) -> None:
        host = [rows(seed * 32 + rank, shape) for rank in range(world)]
        self.xs = [one.to(DEVICE) for one in host]
        self.residuals = [rows(seed * 32 + 30, shape).to(DEVICE) for _ in range(world)]
        self.weight = (1 + rows(seed * 32 + 31, (shape[1],)) * 0.1).to(DEVICE)
        whole = torch.frombuffer(bytearray(summed(host)), dtype=BF16).reshape(shape).to(DEVICE)
        self.whole = whole
        normed, added = reference_norm(whole, self.residuals[0], self.weight, EPSILON, 512)
        self.wanted = raw(normed), raw(added)
        torch.cuda.synchronize()

    def check(self, seen: list[tuple[torch.Tensor, torch.Tensor]], words: str) -> None:
        """Want every rank's (normed, residual) to be the reference's bits."""
        for rank, (normed, added) in enumerate(seen):
            want(raw(added) == self.wanted[1], f"residual, {words}, rank {rank}")
            if raw(normed) != self.wanted[0]:
                reference = torch.frombuffer(bytearray(self.wanted[0]), dtype=BF16)
                odd = (normed.cpu().reshape(-1) != reference).sum()
                want(False, f"normed, {words}, rank {rank}: {int(odd)} values differ")


def bits(world: int, lanes: int, delivery: str = "pull") -> None:
    """Fused, new tensors and in place, against plain torch, over shapes."""
    ranks = Ranks(world, lanes=lanes, delivery=delivery, **SETTINGS)
    try:
        for seed, shape in enumerate(SHAPES):
            inputs = Inputs(world, shape, seed)

            def fused(rank: int, group: Any, place: bool) -> Any:
                told = (inputs.xs[rank], inputs.residuals[rank], inputs.weight, EPSILON)  # noqa: B023
                return group.all_reduce_norm(*told, in_place=place)

            for place in (False, True):
                seen = ranks.each(partial(fused, place=place))
                ranks.succeed()
                inputs.check(seen, f"{shape}, in_place={place}")
    finally:
        ranks.close()


def forms() -> None:
    """Both forms of a launch give the same bits."""
    ranks = Ranks(2, lanes=4, **SETTINGS)
    try:
        for form in (Form(), Form(2, 8), Form(2, 16), Form(1, 3)):
            inputs = Inputs(2, (21, 5120), form.reducers)
            outs = [(torch.zeros_like(x), torch.zeros_like(x)) for x in inputs.xs]
            torch.cuda.synchronize()

            def step(rank: int, group: Any) -> None:
                request, _, _ = group._requests.reduce_norm(inputs.xs[rank], outs[rank][0])  # noqa: B023
                residual = inputs.residuals[rank]  # noqa: B023
                after = epilogue(residual, outs[rank][1], inputs.weight, EPSILON)  # noqa: B023
                stream = torch.cuda.current_stream().cuda_stream
                group._found.launcher.launch(request, stream, form, after)  # noqa: B023

            ranks.each(step)
            ranks.succeed()
            inputs.check(outs, str(form))
    finally:
        ranks.close()


def unfused() -> None:
    """The same bits as an all-reduce and then one kernel; torch's own norm is within one step."""
    ranks = Ranks(2, lanes=4, **SETTINGS)
    try:
        inputs = Inputs(2, (24, 5120), 9)

        def step(rank: int, group: Any) -> Any:
            total = group.all_reduce(inputs.xs[rank])
            return add_norm(
                group._found.launcher, total, inputs.residuals[rank], inputs.weight, EPSILON
            )

        seen = ranks.each(step)
        ranks.succeed()
        inputs.check(seen, "unfused")
        normed, added = torch_norm(inputs.whole, inputs.residuals[0], inputs.weight, EPSILON)
        want(raw(added) == inputs.wanted[1], "torch's residual")
        apart = (normed.float() - seen[0][0].float()).abs() / normed.float().abs().clamp_min(1e-3)
        want(float(apart.max()) <= 2**-7, f"torch's norm is {float(apart.max()):.4f} away")
    finally:
        ranks.close()


def graphs() -> None:
    """Replayed in place on fresh inputs, beside all-reduces of the same group."""
    ranks = Ranks(2, lanes=4, **SETTINGS)
    try:
        shape = (6, 5120)
        kept = Inputs(2, shape, 0)

        def step(rank: int, group: Any) -> Any:
            group.all_reduce(kept.xs[rank].clone())
            told = (kept.xs[rank], kept.residuals[rank], kept.weight, EPSILON)
            return group.all_reduce_norm(*told, in_place=True)

        made, outs = capture(ranks, step)
        for seed in range(1, 30):
            fresh = Inputs(2, shape, seed)
            for rank in range(2):
                kept.xs[rank].copy_(fresh.xs[rank])
                kept.residuals[rank].copy_(fresh.residuals[rank])
            kept.weight.copy_(fresh.weight)
            torch.cuda.synchronize()
            ranks.each(lambda rank, _: made[rank].replay())
            ranks.succeed()
            fresh.check(outs, f"replay {seed}")
    finally:
        ranks.close()


def mismatch() -> None:
    """A rank that only reduces is told apart from ranks that also normalize."""
    ranks = Ranks(2, lanes=2, **SETTINGS)
    try:
        inputs = Inputs(2, (4, 5120), 1)

        def step(rank: int, group: Any) -> None:
            if rank:
                group.all_reduce(inputs.xs[rank])
            else:
                group.all_reduce_norm(inputs.xs[0], inputs.residuals[0], inputs.weight, EPSILON)

        ranks.each(step)
        roots(ranks.finish(), ("mismatch", "all_reduce_norm bf16 [4, 5120]"))
    finally:
        ranks.close()


def cases() -> list[Case]:
    """Return every case by name."""
    return [
        ("norm bits, 2 ranks, 4 lanes", partial(bits, 2, 4)),
        ("norm bits, 4 ranks, 3 lanes", partial(bits, 4, 3)),
        ("norm bits, 3 ranks, push", partial(bits, 3, 2, "push")),
        ("norm bits, 8 ranks", partial(bits, 8, 1)),
        ("norm forms", forms),
        ("norm unfused", unfused),
        ("norm graphs", graphs),
        ("norm mismatch", mismatch),
    ]


if __name__ == "__main__":
    sys.exit(run_cases(cases(), sys.argv[1:]))
