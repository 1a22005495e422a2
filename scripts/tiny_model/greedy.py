"""Greedy decoding of many prompts at once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from scripts.tiny_model.conversation import END, PAD, SPECIAL
from scripts.tiny_model.llama import Cache, Llama

TOKENS_AT_ONCE = 131_072


@torch.inference_mode()
def greedy(model: Llama, prompts: Sequence[list[int]], limits: Sequence[int]) -> list[list[int]]:
    """Return each prompt's continuation up to its end mark, which is the last token if reached.

    A continuation has at most its limit of tokens, and stops where the positions end. Raises
    ValueError for a prompt that leaves no position.
    """
    longest = max(map(len, prompts), default=0)
    if longest >= model.sizes.positions:
        raise ValueError(f"a prompt of {longest} tokens, {model.sizes.positions} positions")
    written: list[list[int]] = [[] for _ in prompts]
    ends = [
        min(len(prompt) + limit, model.sizes.positions)
        for prompt, limit in zip(prompts, limits, strict=True)
    ]
    for chosen in _chunks(ends):
        rows = _continue(model, [prompts[index] for index in chosen], [ends[i] for i in chosen])
        for index, row in zip(chosen, rows, strict=True):
            written[index] = row
    return written


def _chunks(widths: list[int]) -> Iterator[list[int]]:
    """Yield the indices, narrow rows first, in batches of at most TOKENS_AT_ONCE with padding."""
    chunk: list[int] = []
    for index in sorted(range(len(widths)), key=widths.__getitem__):
        if chunk and widths[index] * (len(chunk) + 1) > TOKENS_AT_ONCE:
            yield chunk
            chunk = []
        chunk.append(index)
    if chunk:
        yield chunk


def _continue(model: Llama, prompts: list[list[int]], ends: list[int]) -> list[list[int]]:
    """Append to every prompt until its end mark or its end.

    Rows are padded on the right: a causal model never looks there, and what the cache holds of
    the padding is overwritten before it is seen.
    """
    device = next(model.parameters()).device
    tokens = torch.full((len(prompts), max(ends)), SPECIAL.index(PAD), device=device)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = torch.tensor(prompt, device=device)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    last = torch.tensor(ends, device=device)
    rows = torch.arange(len(prompts), device=device)
    caches, states = _begin(model, tokens, lengths)
    running = lengths < last
    while bool(running.any()):
        chosen = model.lm_head(states).argmax(dim=-1)
        tokens[rows[running], lengths[running]] = chosen[running]
        lengths = lengths + running.long()
        running = running & (chosen != SPECIAL.index(END)) & (lengths < last)
        newest = lengths[:, None] - 1
        caches = [replace(cache, positions=newest) for cache in caches]
        states = model.states(tokens.gather(1, newest), caches)[:, 0]
    return [
        row[len(prompt) : length]
        for row, prompt, length in zip(tokens.tolist(), prompts, lengths.tolist(), strict=True)
    ]


def _begin(model: Llama, tokens: Tensor, lengths: Tensor) -> tuple[list[Cache], Tensor]:
    """Return the caches after the prompts, and the states (rows, hidden) of their last tokens."""
    sizes, count = model.sizes, len(tokens)
    width = int(lengths.max())
    positions = torch.arange(width, device=tokens.device).expand(count, width)
    caches = []
    for _ in range(sizes.layers):
        shape = (count, sizes.kv_heads, tokens.shape[1], sizes.head)
        keys = model.lm_head.weight.new_zeros(shape)
        caches.append(Cache(keys, torch.zeros_like(keys), positions))
    states = model.states(tokens[:, :width], caches)
    return caches, states[torch.arange(count, device=tokens.device), lengths - 1]
