"""Which file of a checkpoint supplies the chat template. Pure: texts in, a value out."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

JINJA = "chat_template.jinja"
TOKENIZER_CONFIG = "tokenizer_config.json"
PROCESSOR = "chat_template.json"
"""Read by processors of images and the like only, never by a tokenizer."""
_NAMED = re.compile(r'"chat_template"\s*:\s*["\[]')


@dataclass(frozen=True)
class ChatTemplate:
    """`source` is a file's name, or who renders instead; None when there is none.

    `unknown` when the file that may have it was not read to its end.
    """

    source: str | None
    verdict: Literal["found", "missing", "unknown"]


def chat_template(
    config: Mapping[str, Any], names: frozenset[str], tokenizer_config: str | None, cut: bool
) -> ChatTemplate:
    """Return where the template comes from, by the order that the engine and transformers look.

    `names` are the files of the folder; `cut` when `tokenizer_config` is only its beginning. Some
    architectures are rendered by the engine itself (sglang 0.5.23, entrypoints/openai/
    chat_encoding.py, `resolve_chat_encoding_spec`). A file of its own comes before an entry of
    tokenizer_config.json (transformers 5, tokenization_utils_base.py, `_from_pretrained`).
    """
    architecture, model_type = _first_architecture(config), config.get("model_type")
    if model_type == "deepseek_v41" or "DeepseekV4" in architecture:
        return ChatTemplate("the engine's own encoder, by `architectures` of config.json", "found")
    if JINJA in names:
        return ChatTemplate(JINJA, "found")
    if tokenizer_config is not None and _has_template(tokenizer_config, cut):
        return ChatTemplate(TOKENIZER_CONFIG, "found")
    if tokenizer_config is not None and cut:
        return ChatTemplate(None, "unknown")
    if "DeepseekV3" in architecture:
        return ChatTemplate("the engine's own encoder, for want of a template", "found")
    return ChatTemplate(None, "missing")


def _first_architecture(config: Mapping[str, Any]) -> str:
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else ""
    return first if isinstance(first, str) else ""


def _has_template(text: str, cut: bool) -> bool:
    if cut:
        return _NAMED.search(text) is not None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and bool(parsed.get("chat_template"))
