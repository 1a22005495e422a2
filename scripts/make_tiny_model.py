"""Make the bundled tiny model: a four-layer Llama with random weights and a chat template.

Usage: .venv/bin/python scripts/make_tiny_model.py [FOLDER]     (default: models/tiny)

The same bytes every time: weights come from NumPy's PCG64 with a fixed seed, not from torch,
whose generators may differ between processors. The text it writes is noise, but printable: rows
of the output matrix for other tokens are zero, so greedy decoding never picks them.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SEED = 20261130
VOCABULARY = 512
SPECIAL = ["<s>", "</s>", "<pad>"]
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
SENTENCES = [
    "Four small machines answer as one when every rank adds its part and says so.",
    "What is 19 + 23? The answer is 42. What is 7 * 6? The answer is 42 again.",
    "A lane carries bytes, a flag says which, and a receipt proves that they arrived.",
    "the user asks, the assistant answers, and the system counts the tokens in between",
]


def main(folder: Path) -> None:
    """Write configuration, tokenizer and weights."""
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder)
    make_weights(tokenizer).save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Train a byte-level BPE on the sentences above."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    fast.chat_template = TEMPLATE
    return fast


def make_weights(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Fill a model of 0.7 million bf16 parameters; TP=4 needs at least four key-value heads."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=16,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        tie_word_embeddings=False,
        dtype="bfloat16",
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    generator = np.random.Generator(np.random.PCG64(SEED))
    for name, parameter in sorted(model.named_parameters()):
        if "norm" not in name:
            values = generator.standard_normal(parameter.shape, dtype=np.float32)
            scale = parameter.shape[-1] ** -0.5
            parameter.data.copy_(torch.from_numpy(values * scale))
    mute = [token for token in range(VOCABULARY) if not printable(tokenizer.decode([token]))]
    model.lm_head.weight.data[mute] = 0
    return model


def printable(text: str) -> bool:
    """Tell whether a token is plain text and no special token."""
    return bool(text) and text.isascii() and text.isprintable() and text not in SPECIAL


if __name__ == "__main__":
    default = Path(__file__).resolve().parent.parent / "models" / "tiny"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
