"""A checkpoint with Engram tables as the real one has them, small, with arbitrary bytes."""

import json
import random
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from tests.engram.test_layout import FLASH

SMALL = FLASH | {"engram_vocab_size": 50, "engram_n_heads": 2, "engram_head_dim": 256}
# Two heads of three n-gram sizes, primes from 50 on, each once: two tables of uneven rows.
PRIMES = (53, 59, 61, 67, 71, 73), (79, 83, 89, 97, 101, 103)
ROWS = {1: sum(PRIMES[0]), 14: sum(PRIMES[1])}


@dataclass(frozen=True)
class Made:
    """Where it is, and the bytes of each table: weights and scales, row after row."""

    path: Path
    weights: dict[int, bytes]
    scales: dict[int, bytes]

    def record(self, layer: int, row: int) -> bytes:
        """A row's weights and scales."""
        return (
            self.weights[layer][row * 256 : row * 256 + 256]
            + self.scales[layer][row * 8 : row * 8 + 8]
        )

    def records(self, layer: int, first: int, end: int) -> bytes:
        """Those of some rows."""
        return b"".join(self.record(layer, row) for row in range(first, end))


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    """Write a file as the format's description says."""
    ends = [0, *accumulate(len(data) for _, _, data in tensors.values())]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for (name, (dtype, shape, _)), begin, end in zip(tensors.items(), ends, ends[1:], strict=False):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    data = b"".join(data for _, _, data in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def make_checkpoint(path: Path, seed: int = 1, rows: dict[int, int] | None = None) -> Made:
    """Make one: layer 1 in one file beside another tensor, layer 14 in two; as `rows` if given.

    With other rows its config.json tells nothing of hash columns that would fit.
    """
    rows, bytes_of = rows or ROWS, random.Random(seed).randbytes
    made = Made(
        path,
        {layer: bytes_of(256 * count) for layer, count in rows.items()},
        {layer: bytes_of(8 * count) for layer, count in rows.items()},
    )
    weight = {n: ("F8_E4M3", [rows[n], 256], made.weights[n]) for n in rows}
    scale = {n: ("F8_E8M0", [rows[n], 8], made.scales[n]) for n in rows}
    name = "layers.{}.engram.embed.{}"
    files = {
        "model-00001-of-00003.safetensors": {
            "embed.weight": ("BF16", [3, 1], b"abcdef"),
            name.format(1, "weight"): weight[1],
            name.format(1, "scale"): scale[1],
        },
        "model-00002-of-00003.safetensors": {name.format(14, "scale"): scale[14]},
        "model-00003-of-00003.safetensors": {name.format(14, "weight"): weight[14]},
    }
    path.mkdir(parents=True)
    for file, tensors in files.items():
        safetensors(path / file, tensors)
    index = {tensor: file for file, tensors in files.items() for tensor in tensors}
    text = {"metadata": {}, "weight_map": index}
    (path / "model.safetensors.index.json").write_text(json.dumps(text))
    counts = SMALL | {"engram_num_embeddings": [rows[1], rows[14]]}
    (path / "config.json").write_text(json.dumps({"text_config": counts}))
    return made
