"""The training loop: AdamW, a cosine over a budget of time or steps, bf16 products on a GPU."""

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from scripts.tiny_model.corpus import Rows
from scripts.tiny_model.llama import Llama
from scripts.tiny_model.progress import say

# Rows of one step by row length: about 40,000 tokens of each, so that no task is crowded out.
BATCH = {48: 1024, 160: 256, 512: 80, 1536: 20, 4096: 8}
REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """How long to train, how fast, and with which share of the usual batch.

    Training ends at `minutes` or at `steps`, whichever comes first.
    """

    seed: int
    minutes: float
    steps: int | None
    warmup: int
    batch_divisor: int
    rate: float = 2.5e-3

    def rate_at(self, step: int, progress: float) -> float:
        """Return the learning rate: linear warm-up, then a cosine down to 1 %."""
        cosine = 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        return self.rate * min(1.0, (step + 1) / self.warmup) * (0.01 + 0.99 * cosine)


@dataclass(frozen=True)
class Trained:
    """What a training did: steps, tokens with padding, seconds, first and last mean loss."""

    steps: int
    tokens: int
    seconds: float
    first_loss: float
    last_loss: float


class Batches:
    """The corpus on the device, and random rows of it."""

    def __init__(self, rows: dict[int, Rows], settings: Settings, device: torch.device) -> None:
        self._tokens = {
            length: torch.from_numpy(one.tokens).to(device) for length, one in rows.items()
        }
        self._learned = {
            length: torch.from_numpy(one.learned).to(device) for length, one in rows.items()
        }
        self._sizes = {length: max(1, BATCH[length] // settings.batch_divisor) for length in rows}
        self._generator = torch.Generator(device).manual_seed(settings.seed)
        self.tokens = sum(length * size for length, size in self._sizes.items())

    @property
    def lengths(self) -> tuple[int, ...]:
        """The row lengths."""
        return tuple(self._sizes)

    def draw(self, length: int) -> tuple[Tensor, Tensor]:
        """Return tokens int64 and learned bool, (rows, length + 1) each."""
        tokens = self._tokens[length]
        chosen = torch.randint(
            len(tokens), (self._sizes[length],), device=tokens.device, generator=self._generator
        )
        return tokens[chosen].long(), self._learned[length][chosen]


def train(model: Llama, rows: dict[int, Rows], settings: Settings) -> Trained:
    """Train the model in place, on the device it is on; report the loss on stderr."""
    device = next(model.parameters()).device
    batches = Batches(rows, settings, device)
    optimizer = make_optimizer(model, settings)
    started = reported = time.monotonic()
    step, progress, losses = 0, 0.0, torch.zeros(len(rows), device=device)
    first_loss = math.nan
    while progress < 1:
        for group in optimizer.param_groups:
            group["lr"] = settings.rate_at(step, progress)
        losses = take_step(model, batches, optimizer)
        if step == 0:
            first_loss = float(losses.mean())
        step += 1
        seconds = time.monotonic() - started
        progress = max(seconds / (60 * settings.minutes), step / (settings.steps or math.inf))
        if time.monotonic() - reported > REPORT_SECONDS or progress >= 1:
            reported = time.monotonic()
            report(step, seconds, step * batches.tokens, batches.lengths, losses.tolist())
    seconds = time.monotonic() - started
    return Trained(step, step * batches.tokens, seconds, first_loss, float(losses.mean()))


def make_optimizer(model: Llama, settings: Settings) -> torch.optim.AdamW:
    """Return AdamW that decays matrices and leaves norms and embeddings alone."""
    named = list(model.named_parameters())
    decayed = [one for name, one in named if one.ndim == 2 and "embed" not in name]
    others = [one for name, one in named if one.ndim != 2 or "embed" in name]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    fused = next(model.parameters()).is_cuda
    return torch.optim.AdamW(groups, lr=settings.rate, betas=(0.9, 0.95), fused=fused)


def take_step(model: Llama, batches: Batches, optimizer: torch.optim.AdamW) -> Tensor:
    """Take one step on rows of every length; return the loss of each, nats a learned token."""
    losses = []
    for length in batches.lengths:
        tokens, learned = batches.draw(length)
        loss = loss_of(model, tokens, learned)
        (loss / len(batches.lengths)).backward()
        losses.append(loss.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return torch.stack(losses)


def loss_of(model: Llama, tokens: Tensor, learned: Tensor) -> Tensor:
    """Return the mean cross-entropy over the learned tokens of rows.

    Only their states meet the output matrix: in a long row they are a few of thousands.
    """
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.is_cuda):
        states = model.states(tokens[:, :-1])
        logits = model.lm_head(states[learned[:, 1:]])
    return functional.cross_entropy(logits.float(), tokens[:, 1:][learned[:, 1:]])


def report(
    step: int, seconds: float, tokens: int, lengths: tuple[int, ...], losses: list[float]
) -> None:
    """Print one line about where the training is."""
    each = "  ".join(f"{length}: {loss:.3f}" for length, loss in zip(lengths, losses, strict=True))
    say(f"step {step}, {seconds:.0f} s, {tokens / seconds / 1e6:.2f} M tokens/s, loss {each}")
