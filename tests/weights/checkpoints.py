"""Small checkpoints on disk, whole or damaged, and a runner that looks at them here."""

import json
import random
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tetraspark.doctor.check import Check
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts
from tetraspark.fleet.probe import probe
from tetraspark.weights.checkpoint import checkpoint_checks, wanted

SHARDS = 3


HOME = b"HOME = pwd.getpwuid(os.getuid()).pw_dir"


class Here:
    """Runs the programs of any node on this machine, as ssh would; no hash is kept in a home."""

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        assert isinstance(command.stdin, bytes)
        argv = [sys.executable, *command.argv[1:]]
        text = command.stdin.replace(HOME, b"HOME = '/dev/null/home'")
        done = subprocess.run(argv, input=text, capture_output=True, check=False)
        for line in done.stdout.decode().splitlines():
            if on_line is not None:
                on_line(line)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


def shard_name(number: int, count: int = SHARDS) -> str:
    return f"model-{number:05d}-of-{count:05d}.safetensors"


def write_shard(path: Path, name: str, size: int, seed: int) -> None:
    """Write a safetensors file of one tensor of `size` bytes."""
    header = json.dumps(
        {name: {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}},
        separators=(",", ":"),
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + random.Random(seed).randbytes(size))


def write_checkpoint(folder: Path, size: int = 1000, shards: int = SHARDS) -> Path:
    """Write a whole checkpoint whose shards hold `size` bytes each."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {}
    for number in range(1, shards + 1):
        tensor, name = f"layers.{number}.weight", shard_name(number, shards)
        write_shard(folder / name, tensor, size, number)
        weights[tensor] = name
    index = {"metadata": {"total_size": size * shards}, "weight_map": weights}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class":"PreTrainedTokenizerFast"}')
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


def facts_of(path: str | Path) -> Facts:
    """Return what the program of a probe finds."""
    return probe(Here(), "node1", wanted(str(path)))


def checks_of(path: Path) -> dict[str, Check]:
    """Return the checks of a folder by the last word of their IDs."""
    found = checkpoint_checks("node1", str(path), facts_of(path))
    return {check.id.removeprefix("CHECKPOINT."): check for check in found}


class Nodes(Here):
    """Nodes with folders of their own: what they are asked of `path` is done in `path.NODE`."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        assert isinstance(command.stdin, bytes)
        script = command.stdin.replace(self.path.encode(), f"{self.path}.{node}".encode())
        return super().run(node, replace(command, stdin=script), on_line)

    def interrupt(self) -> None:
        """Nothing runs on."""
