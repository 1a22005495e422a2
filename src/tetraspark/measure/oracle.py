"""What a collective must return, computed without one, and how many values differ from it."""

from dataclasses import dataclass

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
BITS = {2: torch.int16, 4: torch.int32}


@dataclass(frozen=True)
class Answer:
    """The values wanted, and how far a sum in another order may be from them (fp32, or None).

    Any order of adding W values, each partial sum rounded, errs by at most (W-1) u sum|x|, where
    u is half of the dtype's eps (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), and
    the wanted value by u |sum|: W x eps x sum|x| covers both.
    """

    values: torch.Tensor
    slack: torch.Tensor | None

    def part(self, rank: int, world: int) -> "Answer":
        """Return the answer for one of `world` equal parts."""
        slack = None if self.slack is None else self.slack.chunk(world)[rank]
        return Answer(self.values.chunk(world)[rank], slack)

    def differing(self, seen: torch.Tensor) -> int:
        """Return how many values differ in any bit: -0 is not 0."""
        return int((bits(seen) != bits(self.values)).sum())

    def beyond(self, seen: torch.Tensor) -> int:
        """Return how many values are further off than `slack`; a NaN is."""
        if self.slack is None:
            return self.differing(seen)
        distance = (seen.cpu().reshape(-1).float() - self.values.float()).abs()
        return int((~(distance <= self.slack)).sum())


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as integers of the same bits, flat, on the CPU."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(BITS[tensor.itemsize])


def shards(seed: int, world: int, count: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return every rank's input, `count` values each: the same in every process."""
    found = []
    for rank in range(world):
        generator = torch.Generator().manual_seed(seed * 1009 + rank)
        found.append((torch.randn(count, generator=generator) * 8).to(dtype))
    return found


def rotated(given: list[torch.Tensor], step: int) -> list[torch.Tensor]:
    """Return other inputs of the same values: what an earlier call left is not what is wanted."""
    return [torch.roll(one, step) for one in given]


def summed(given: list[torch.Tensor]) -> Answer:
    """Return the sum in fp32 in rank order, rounded once to the inputs' dtype."""
    total, magnitude = given[0].float(), given[0].float().abs()
    for other in given[1:]:
        total = total + other.float()
        magnitude = magnitude + other.float().abs()
    slack = len(given) * torch.finfo(given[0].dtype).eps * magnitude
    return Answer(total.to(given[0].dtype), slack)


def gathered(given: list[torch.Tensor]) -> Answer:
    """Return all inputs in rank order, exact for everyone."""
    return Answer(torch.cat(given), None)
