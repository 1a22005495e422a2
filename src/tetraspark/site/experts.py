"""Whether the experts of the model can be divided as `engine.ep` asks, by the image's kernels.

With `ep` groups a rank holds `1/ep` of the experts, and of each of them `ep/tp` of its columns
(sglang 0.5.23, srt/layers/moe/fused_moe_triton/layer.py).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from tetraspark.errors import UsageError
from tetraspark.site.engines import BRANCH, engine_of
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, is_list, table_at
from tetraspark.site.source import read_bytes

COLUMNS = 128
"""FlashInfer's MXFP4 CUTLASS kernels want a rank's columns in multiples of this.

sglang 0.5.23, srt/layers/quantization/mxfp4_flashinfer_cutlass_moe.py, `create_weights`; they are
the default on SM120 and SM121 (srt/arg_groups/model_overrides/deepseek_v4.py).
"""

BACKEND_FLAG = "--moe-runner-backend"
DEFAULT_BACKENDS = ("auto", "flashinfer_mxfp4")
B12X = "DSV41_MOE_B12X_NEXT"
"""At 1, an adapter of the branch's images runs the experts on b12x, in smaller tiles."""

_EP: KeyPath = ("engine", "ep")
_TP: KeyPath = ("engine", "tp")


@dataclass(frozen=True)
class Experts:
    """Routed experts: columns of one (`moe_intermediate_size`), how many, and the draft's."""

    columns: int
    count: int
    draft_count: int | None
    source: str


V41 = Experts(2304, 384, 128, "DeepSeek-V4.1-Flash")
"""From its config.json: moe_intermediate_size, n_routed_experts, dspark_n_routed_experts."""


def read_experts(folder: Path) -> Experts | None:
    """Return what a checkpoint's config.json says; None for a model without experts.

    A config that is not on this machine, or cannot be read, is taken for that of V4.1.
    """
    path = folder / "config.json"
    try:
        config = json.loads(read_bytes(path))
        config = {**config, **config.get("text_config", {})}
    except (UsageError, ValueError, TypeError, AttributeError, RecursionError):
        return V41
    columns, count = config.get("moe_intermediate_size"), config.get("n_routed_experts")
    if not _positive(columns) or not _positive(count):
        return None
    draft = config.get("dspark_n_routed_experts")
    return Experts(columns, count, draft if _positive(draft) else None, str(path))


def model_folder(base: Path, document: Document) -> Path:
    """Return the model's folder on this machine; `base` itself where the path is no use."""
    path = table_at(document, "model").get("path")
    try:
        return base / Path(path).expanduser() if isinstance(path, str) else base
    except RuntimeError:
        return base


def expert_findings(document: Document, experts: Experts | None) -> Iterator[Finding]:
    """Refuse an `ep` that divides the experts as no kernel of the image can run them."""
    engine = table_at(document, "engine")
    tp, ep = engine.get("tp"), engine.get("ep", 1)
    known = engine_of(document)
    if document.get("kind") != "fleet" or experts is None or known is None:
        return
    if not _positive(tp) or not _positive(ep):
        return
    fault = _fault(experts, document, tp, ep)
    if fault is not None:
        fits = [n for n in range(1, tp + 1) if not _fault(experts, document, tp, n)]
        fix = f"set ep = {' or '.join(map(str, fits))}" if fits else "change tp"
        if known == BRANCH and "columns" in fault[0]:
            fix += f', or {B12X} = "1" in [env]'
        yield Finding(_EP, fault[0], fault[1], fix, (_TP,))


def _fault(experts: Experts, document: Document, tp: int, ep: int) -> tuple[str, str] | None:
    """Return what is seen and wanted of one `ep`, or None when it can run."""
    if tp % ep:
        return f"ep = {ep} with tp = {tp}", "ep that divides tp"
    counts = [("routed experts", experts.count)]
    drafts = table_at(document, "speculative").get("algorithm") == "DSPARK"
    if drafts and experts.draft_count is not None:
        counts.append(("experts of the draft", experts.draft_count))
    for what, count in counts:
        if count % ep:
            return f"ep = {ep} with {count} {what} of {experts.source}", "ep that divides them"
    slices = tp // ep
    seen = f"ep = {ep} with tp = {tp}: a rank gets {experts.columns} / {slices}"
    of = f"columns of each expert of {experts.source}"
    if experts.columns % slices:
        return f"{seen} {of}", "whole columns"
    if _default_kernels(document) and experts.columns // slices % COLUMNS:
        seen = f"{seen} = {experts.columns // slices} {of}"
        return seen, f"a multiple of {COLUMNS}: FlashInfer's MXFP4 kernels take no other"
    return None


def _default_kernels(document: Document) -> bool:
    """Tell whether the experts run on FlashInfer's MXFP4 kernels."""
    if engine_of(document) == BRANCH and table_at(document, "env").get(B12X) == "1":
        return False
    words = table_at(document, "engine").get("extra_args", ())
    return _backend(list(words) if is_list(words) else []) in DEFAULT_BACKENDS


def _backend(words: list[Any]) -> object:
    """Return the last backend among the words, as the engine takes it."""
    found: object = DEFAULT_BACKENDS[0]
    for place, word in enumerate(words):
        if word == BACKEND_FLAG:
            found = next(iter(words[place + 1 :]), None)
        elif isinstance(word, str) and word.startswith(f"{BACKEND_FLAG}="):
            found = word.partition("=")[2]
    return found


def _positive(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
