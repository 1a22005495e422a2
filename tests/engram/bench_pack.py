"""How fast a shard is packed, beside a plain copy of as many bytes on the same disk.

    python -m tests.engram.bench_pack [--gib 2] [--runs 5] [--folder DIR]

Caches are cold: the checkpoint is dropped from the page cache before each run, and both runs end
with their bytes on the disk. Prints medians and ratios, and what sha256 alone does here.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.engram.test_layout import FLASH
from tetraspark.engram.layout import read_tables
from tetraspark.engram.program import script
from tetraspark.engram.request import request, slices

BLOCK = 8 << 20


def write_checkpoint(folder: Path, gib: float) -> int:
    """Write one table of about this size, in the checkpoint's format; return the bytes of rows."""
    vocabulary = int(gib * 2**30 / 264 / 24)
    config = FLASH | {"engram_layer_ids": [1], "engram_vocab_size": vocabulary}
    try:
        read_tables(json.dumps(config | {"engram_num_embeddings": [0]}))
        raise AssertionError("a table without rows")
    except ValueError as error:
        rows = int(str(error).rsplit(" ", 1)[1])
    (folder / "config.json").write_text(json.dumps(config | {"engram_num_embeddings": [rows]}))
    name, bytes_of = "layers.1.engram.embed.{}", {"weight": 256 * rows, "scale": 8 * rows}
    header = {
        name.format("weight"): {
            "dtype": "F8_E4M3",
            "shape": [rows, 256],
            "data_offsets": [0, bytes_of["weight"]],
        },
        name.format("scale"): {
            "dtype": "F8_E8M0",
            "shape": [rows, 8],
            "data_offsets": [bytes_of["weight"], 264 * rows],
        },
    }
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        block, left = os.urandom(BLOCK), 264 * rows
        while left:
            left -= file.write(block[: min(left, BLOCK)])
        file.flush()
        os.fsync(file.fileno())
    return 264 * rows


def drop(path: Path) -> None:
    """Drop a file from the page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def copy(source: Path, target: Path) -> None:
    """Copy as dd does, with large blocks, and have it on the disk."""
    memory = memoryview(bytearray(BLOCK))
    with source.open("rb", buffering=0) as file, target.open("wb", buffering=0) as out:
        while count := file.readinto(memory):
            out.write(memory[:count])
        os.fdatasync(out.fileno())


def pack(model: Path, folder: Path) -> None:
    """Pack the whole table with the program that nodes run."""
    tables = read_tables((model / "config.json").read_text())
    text = script(request("pack", str(model), str(folder), slices(tables, 0, 1, "rows")))
    done = subprocess.run([sys.executable, "-I", "-"], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def timed(run: Callable[[], None], before: Callable[[], None]) -> float:
    """Return the seconds of one run."""
    before()
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        model, target, shards = Path(name), Path(name, "copy"), Path(name, "shards")
        size = write_checkpoint(model, options.gib)
        source = model / "model.safetensors"
        seconds: dict[str, list[float]] = {"copy": [], "pack": []}

        def clear() -> None:
            target.unlink(missing_ok=True)
            for file in shards.glob("*"):
                file.unlink()
            os.sync()
            drop(source)

        for _ in range(options.runs):
            seconds["copy"].append(timed(lambda: copy(source, target), clear))
            seconds["pack"].append(timed(lambda: pack(model, shards), clear))
    rates = {what: size / statistics.median(some) / 1e9 for what, some in seconds.items()}
    ratios = [one / other for one, other in zip(seconds["copy"], seconds["pack"], strict=True)]
    begun, data = time.perf_counter(), bytes(BLOCK)
    for _ in range(16):
        hashlib.sha256(data).digest()
    hashing = 16 * BLOCK / (time.perf_counter() - begun) / 1e9
    print(f"{size / 1e9:.2f} GB of rows, {options.runs} runs, medians in GB/s")
    for what, rate in rates.items():
        spread = ", ".join(f"{size / one / 1e9:.2f}" for one in seconds[what])
        print(f"{what:<5} {rate:.2f}   ({spread})")
    print(f"pack/copy, median of the pairs: {statistics.median(ratios):.2f}")
    print(f"sha256 alone, one core: {hashing:.2f}")


if __name__ == "__main__":
    main()
