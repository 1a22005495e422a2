"""One run: tokenizer, corpus, training and weights on disk; and the examination of the weights."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from scripts.tiny_model.corpus import LENGTHS, corpus, texts
from scripts.tiny_model.evaluation import FULL, QUICK, Evaluation, Extent, evaluate
from scripts.tiny_model.llama import Architecture, Llama
from scripts.tiny_model.progress import say
from scripts.tiny_model.record import EVALUATION, TRAINING, WEIGHTS, Record, read, write
from scripts.tiny_model.tokenizer import load_tokenizer, train_tokenizer
from scripts.tiny_model.training import Settings, train

SEED, TOKENIZER_SEED = 20261130, 1


@dataclass(frozen=True)
class Scale:
    """How much of everything: corpus, longest rows, batch, warm-up steps, cases."""

    shards: int
    shard_divisor: int
    longest: int
    batch_divisor: int
    warmup: int
    extent: Extent


# So many shards that eight minutes on one H200 see a text fewer than ten times.
WHOLE = Scale(64, 1, longest=LENGTHS[-1], batch_divisor=1, warmup=200, extent=FULL)
TRIAL = Scale(1, 20, longest=LENGTHS[1], batch_divisor=32, warmup=4, extent=QUICK)


@dataclass(frozen=True)
class Plan:
    """Where a run writes, what it trains on which device, and when training ends.

    `minutes` count from the start of the run, tokenizer and corpus included.
    """

    out: Path
    sizes: Architecture
    scale: Scale
    device: torch.device
    minutes: float
    steps: int | None
    command: str


def run(plan: Plan) -> Record:
    """Leave tokenizer.json, weights.pt (bf16) and training.json in `plan.out`."""
    started = time.monotonic()
    plan.out.mkdir(parents=True, exist_ok=True)
    scale = plan.scale
    tokenizer = train_tokenizer(
        "".join(part.text for part in text.parts)
        for text in texts(TOKENIZER_SEED, 0, scale.shard_divisor)
    )
    tokenizer.save(str(plan.out / "tokenizer.json"))
    say("tokenizer written; drawing the corpus")
    processes = min(scale.shards, max(1, (os.cpu_count() or 2) - 1))
    rows = corpus(tokenizer, SEED, scale.shards, scale.shard_divisor, processes)
    rows = {length: some for length, some in rows.items() if length <= scale.longest}
    counts = {length: len(some.tokens) for length, some in rows.items()}
    say(f"rows of the corpus by length: {counts}")
    left = plan.minutes - (time.monotonic() - started) / 60
    settings = Settings(SEED, left, plan.steps, scale.warmup, scale.batch_divisor)
    model = Llama(plan.sizes, SEED).to(plan.device)
    trained = train(model, rows, settings)
    state = {name: one.to("cpu", torch.bfloat16) for name, one in model.state_dict().items()}
    torch.save(state, plan.out / WEIGHTS)
    record = Record(
        architecture=plan.sizes,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        settings=settings,
        rows=counts,
        trained=trained,
        device=device_name(plan.device),
        torch=torch.__version__,
        command=plan.command,
    )
    write(plan.out, TRAINING, record)
    say("weights written")
    return record


def examine(out: Path, device: torch.device, extent: Extent) -> Evaluation:
    """Evaluate the weights of a run's folder and leave evaluation.json there."""
    tokenizer = load_tokenizer(out)
    model = Llama(Architecture(**read(out, TRAINING)["architecture"])).to(device)
    # Products of bf16 are slow on many processors; the weights are the same in fp32.
    model.to(torch.bfloat16 if device.type == "cuda" else torch.float32).eval()
    model.load_state_dict(torch.load(out / WEIGHTS, map_location=device, weights_only=True))
    say("evaluating")
    evaluation = evaluate(model, tokenizer, SEED, extent)
    write(out, EVALUATION, evaluation)
    return evaluation


def device_name(device: torch.device) -> str:
    """Return what trained: the GPU's name, or the processor's architecture."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"a processor ({platform.machine()})"
