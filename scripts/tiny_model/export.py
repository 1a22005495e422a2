"""From a run's folder to a folder that any engine loads: Hugging Face's files and a card."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from scripts.tiny_model.card import card
from scripts.tiny_model.conversation import BEGIN, CHAT_TEMPLATE, END, PAD, SPECIAL
from scripts.tiny_model.llama import Architecture
from scripts.tiny_model.record import EVALUATION, TRAINING, WEIGHTS, read

IDS = {
    "bos_token_id": SPECIAL.index(BEGIN),
    "eos_token_id": SPECIAL.index(END),
    "pad_token_id": SPECIAL.index(PAD),
}


def export(run: Path, folder: Path) -> None:
    """Write configuration, tokenizer, chat template, bf16 weights, records and card."""
    training, evaluation = read(run, TRAINING), read(run, EVALUATION)
    state = torch.load(run / WEIGHTS, map_location="cpu", weights_only=True)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    for name in ("tokenizer.json", TRAINING, EVALUATION):
        shutil.copyfile(run / name, folder / name)
    sizes = Architecture(**training["architecture"])
    _write(folder / "config.json", configuration(sizes))
    _write(folder / "generation_config.json", IDS)
    _write(folder / "tokenizer_config.json", tokenizer_configuration(sizes))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    (folder / "README.md").write_text(card(training, evaluation), encoding="utf-8")


def configuration(sizes: Architecture) -> dict[str, Any]:
    """Return config.json: a Llama of these sizes."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "dtype": "bfloat16",
        "head_dim": sizes.head,
        "hidden_act": "silu",
        "hidden_size": sizes.hidden,
        "initializer_range": 0.02,
        "intermediate_size": sizes.intermediate,
        "max_position_embeddings": sizes.positions,
        "mlp_bias": False,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "num_key_value_heads": sizes.kv_heads,
        "rms_norm_eps": sizes.norm_epsilon,
        "rope_parameters": {"rope_theta": sizes.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": sizes.vocabulary,
        **IDS,
    }


def tokenizer_configuration(sizes: Architecture) -> dict[str, Any]:
    """Return tokenizer_config.json for the file that `tokenizers` wrote."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "model_max_length": sizes.positions,
    }


def _write(file: Path, values: dict[str, Any]) -> None:
    file.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
