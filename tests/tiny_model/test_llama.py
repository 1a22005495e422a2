"""The model of the training is the model that engines load: against transformers' Llama."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from scripts.tiny_model.conversation import END, SPECIAL
from scripts.tiny_model.export import configuration
from scripts.tiny_model.greedy import greedy
from scripts.tiny_model.llama import Architecture, Llama

SIZES = Architecture(vocabulary=96, hidden=64, intermediate=96, layers=2, positions=64)


@pytest.fixture(scope="module")
def pair() -> tuple[Llama, LlamaForCausalLM]:
    model = Llama(SIZES, seed=4)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.data *= 8  # Far from uniform, so that a wrong rotation shows.
    other = LlamaForCausalLM(LlamaConfig(**configuration(SIZES))).float()
    other.load_state_dict(model.state_dict())
    return model.eval(), other.eval()


@torch.inference_mode()
def test_logits_are_those_of_transformers(pair: tuple[Llama, LlamaForCausalLM]) -> None:
    model, other = pair
    tokens = torch.randint(96, (3, 50), generator=torch.Generator().manual_seed(1))
    ours, theirs = model(tokens), other(tokens).logits
    assert ours.std() > 0.5
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_greedy_writes_what_transformers_writes(pair: tuple[Llama, LlamaForCausalLM]) -> None:
    model, other = pair
    prompts = [[5, 9, 11], [40], [7] * 30, [8, 30, 31, 32, 70]]
    limits = [20, 30, 10, 1]
    written = greedy(model, prompts, limits)
    for prompt, limit, mine in zip(prompts, limits, written, strict=True):
        made = other.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=limit,
            do_sample=False,
        )
        assert mine == made[0, len(prompt) :].tolist()
    assert len({tuple(one) for one in written}) == len(prompts)


def test_greedy_stops_at_the_end_mark_and_at_the_last_position() -> None:
    model = Llama(SIZES)
    torch.nn.init.zeros_(model.lm_head.weight)
    assert greedy(model, [[5] * 60, [6]], [9, 3]) == [[0] * 4, [0] * 3]
    with torch.no_grad():
        model.model.norm.weight.zero_()  # States are zero: every logit is, and the first wins.
    assert greedy(model, [[5]], [2]) == [[0, 0]]
    ending = Llama(SIZES)
    with torch.no_grad():
        ending.model.embed_tokens.weight.fill_(1)
        for name, parameter in ending.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                parameter.zero_()
        ending.lm_head.weight.zero_()
        ending.lm_head.weight[SPECIAL.index(END)] = 1
    assert greedy(ending, [[5], [6, 7]], [8, 8]) == [[SPECIAL.index(END)]] * 2


def test_a_prompt_that_fills_all_positions_is_refused() -> None:
    with pytest.raises(ValueError, match="64 tokens, 64 positions"):
        greedy(Llama(SIZES), [[5] * 64, [6]], [1, 1])


def test_sizes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="do not divide"):
        Architecture(heads=6, kv_heads=4)
