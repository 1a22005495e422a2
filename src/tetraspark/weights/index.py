"""Which shards a checkpoint has, by its index file. Pure: text in, a value out."""

import json
import re
from dataclasses import dataclass

INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r'"([^"\\/]+\.safetensors)"')
_NUMBERED = re.compile(r"(.*-)(\d+)-of-(\d+)(\.safetensors)")
_TOTAL = re.compile(r'"total_size"\s*:\s*(\d{1,18})\b')


@dataclass(frozen=True)
class Index:
    """The shards in order, None where they cannot be told; `total_size` of the tensors, bytes."""

    shards: tuple[str, ...] | None
    total_size: int | None


def read_index(text: str, cut: bool = False) -> Index:
    """Return what an index says; `cut` when the text is only the file's beginning.

    The index of a large checkpoint is megabytes, one line a tensor. From its beginning the shards
    are known by their numbers: `model-00007-of-00048.safetensors` names all 48. Raises ValueError
    for a text that is no index.
    """
    if cut:
        total = _TOTAL.search(text)
        return Index(_by_number(_SHARD.findall(text)), int(total[1]) if total else None)
    try:
        index = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    weights = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weights, dict) or not weights:
        raise ValueError("no `weight_map`")
    names = list(weights.values())
    if not all(isinstance(name, str) and _SHARD.fullmatch(f'"{name}"') for name in names):
        raise ValueError("`weight_map` names something else than *.safetensors of the folder")
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    size = int(total) if isinstance(total, int | float) and 0 <= total < 1e18 else None
    return Index(tuple(sorted(set(names))), size)


def _by_number(names: list[str]) -> tuple[str, ...] | None:
    """Return all names of a numbered series, or None when these are not of one."""
    series = set()
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            return None
        series.add((match[1], len(match[2]), match[3], match[4]))
    if len(series) != 1:
        return None
    start, width, count, end = series.pop()
    if int(count) > 10_000:
        return None
    return tuple(f"{start}{n:0{width}d}-of-{count}{end}" for n in range(1, int(count) + 1))
