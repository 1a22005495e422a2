"""Checkpoints that are none, and those of another make."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engram.checkpoint import ROWS, Made, safetensors
from tests.engram.packing import contents, pack, problem


def test_a_single_file_without_an_index_is_a_checkpoint(made: Made, tmp_path: Path) -> None:
    """And one whose names begin with `model.`, as the engine's own do."""
    pack(made.path, tmp_path / "a")
    single = tmp_path / "single"
    single.mkdir()
    (single / "config.json").write_text((made.path / "config.json").read_text())
    name = "model.layers.{}.engram.embed.{}"
    kinds = {"weight": ("F8_E4M3", 256, made.weights), "scale": ("F8_E8M0", 8, made.scales)}
    safetensors(
        single / "model.safetensors",
        {
            name.format(layer, kind): (dtype, [rows, width], of[layer])
            for layer, rows in ROWS.items()
            for kind, (dtype, width, of) in kinds.items()
        },
    )
    pack(single, tmp_path / "b")
    for layer in ROWS:
        file = f"engram-l{layer}-r0of4.bin"
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def damage_index(made: Made) -> None:
    (made.path / "model.safetensors.index.json").write_text('{"weight_map": []}')


def damage_header(made: Made) -> None:
    (made.path / "model-00001-of-00003.safetensors").write_bytes(b"\xff" * 100)


def damage_json(made: Made) -> None:
    (made.path / "model-00001-of-00003.safetensors").write_bytes((2).to_bytes(8, "little") + b"[]")


def damage_end(made: Made) -> None:
    path = made.path / "model-00003-of-00003.safetensors"
    os.truncate(path, path.stat().st_size - 1)


def damage_pipe(made: Made) -> None:
    path = made.path / "model-00002-of-00003.safetensors"
    path.unlink()
    os.mkfifo(path)


def damage_endless(made: Made) -> None:
    path = made.path / "model.safetensors.index.json"
    path.unlink()
    path.symlink_to("/dev/zero")


def damage_huge(made: Made) -> None:
    os.truncate(made.path / "model.safetensors.index.json", 1 << 40)


def damage_missing(made: Made) -> None:
    (made.path / "model-00002-of-00003.safetensors").unlink()


def damage_name(made: Made) -> None:
    path = made.path / "model.safetensors.index.json"
    path.write_text(path.read_text().replace("layers.14.engram.embed.scale", "layers.14.other"))


def damage_outside(made: Made) -> None:
    path = made.path / "model.safetensors.index.json"
    path.write_text(path.read_text().replace('"model-00003', '"../model-00003'))


def damage_dtype(made: Made) -> None:
    path = made.path / "model-00003-of-00003.safetensors"
    path.write_bytes(path.read_bytes().replace(b"F8_E4M3", b"F8_E5M2"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_index, "no weight_map"),
        (damage_header, "100 bytes without a safetensors header"),
        (damage_json, "no JSON object"),
        (damage_end, "layers.14.engram.embed.weight has bytes 0 to "),
        (damage_pipe, "00002-of-00003.safetensors: not a regular file"),
        (damage_endless, "index.json: not a regular file"),
        (damage_huge, f"{1 << 40} bytes; wanted: an index of at most"),
        (damage_missing, "No such file"),
        (damage_name, "0 tensors called layers.14.engram.embed.scale"),
        (damage_outside, "'../model-00003-of-00003.safetensors'"),
        (damage_dtype, "F8_E5M2"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused_before_a_byte_is_written(
    made: Made, tmp_path: Path, damage: Callable[[Made], None], words: str
) -> None:
    damage(made)
    assert words in problem(pack(made.path, tmp_path / "out"))
    assert contents(tmp_path / "out") == {}


def test_a_folder_without_a_checkpoint_is_refused(made: Made, tmp_path: Path) -> None:
    (made.path / "model.safetensors.index.json").unlink()
    assert "neither model.safetensors.index.json nor" in problem(pack(made.path, tmp_path))
