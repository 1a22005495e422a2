"""Packing: every byte where it belongs, and nothing taken for what it is not."""

import ast
import os
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engram.checkpoint import ROWS, Made, make_checkpoint
from tests.engram.packing import contents, manifest, pack, problem, states
from tetraspark.engram.layout import Split, Table, read_tables, shard_range
from tetraspark.engram.plan import PYTHON
from tetraspark.engram.program import script
from tetraspark.engram.request import request, slices


@pytest.mark.parametrize("split", ["rows", "columns"])
@pytest.mark.parametrize("tp", [1, 2, 3, 4, 8])
def test_every_row_of_every_rank_is_the_sources(
    made: Made, tmp_path: Path, tp: int, split: Split
) -> None:
    for rank in range(tp):
        assert states(pack(made.path, tmp_path / "out", rank, tp, split)) == ["packed", "packed"]
    for layer, rows in ROWS.items():
        whole, ends = b"", [0]
        for rank in range(tp):
            found = manifest(tmp_path / "out", layer, rank, tp)
            assert found.rows[0] == ends[-1]
            data = (tmp_path / "out" / f"engram-l{layer}-r{rank}of{tp}.bin").read_bytes()
            assert len(data) == found.bytes
            whole += data[found.header_bytes :]
            ends.append(found.rows[1])
        assert ends[-1] == rows
        assert whole == made.records(layer, 0, rows)


def test_the_first_page_is_what_the_readers_look_for(made: Made, tmp_path: Path) -> None:
    assert states(pack(made.path, tmp_path, 2)) == ["packed", "packed"]
    page = (tmp_path / "engram-l14-r2of4.bin").read_bytes()[:4096]
    first, end = ROWS[14] * 2 // 4, ROWS[14] * 3 // 4
    words = [int.from_bytes(page[at : at + 8], "little") for at in range(0, 48, 8)]
    assert words == [0x31344E4531565344, 14, first, end, ROWS[14], 264]
    assert page[48:] == bytes(4048)


def test_the_manifest_says_where_rows_came_from_and_how_to_prove_them(
    made: Made, tmp_path: Path
) -> None:
    pack(made.path, tmp_path, 1)
    found = manifest(tmp_path, 14, 1)
    sums = subprocess.run(
        ["sha256sum", tmp_path / "engram-l14-r1of4.bin"], capture_output=True, check=True
    )
    assert sums.stdout.decode().split()[0] == found.sha256
    assert (found.layers, found.rank, found.tp, found.row_bytes) == ((1, 14), 1, 4, 264)
    assert (found.weight.dtype, found.scale.dtype) == ("F8_E4M3", "F8_E8M0")
    assert [one.file for one in found.sources] == [
        "model-00003-of-00003.safetensors",
        "model-00002-of-00003.safetensors",
    ]
    for one in found.sources:
        assert one.size == (made.path / one.file).stat().st_size
    assert len(found.samples) == 64
    assert found.samples[0][0] == found.rows[0] and found.samples[-1][0] == found.rows[1] - 1


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tp=st.integers(1, 6), data=st.data(), seed=st.integers(0, 1 << 30))
def test_any_table_is_partitioned_row_by_row(
    tmp_path: Path, tp: int, data: st.DataObject, seed: int
) -> None:
    """Tables of any size, down to fewer rows than ranks."""
    rows = {layer: data.draw(st.integers(1, 3000)) for layer in (1, 14)}
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    made = make_checkpoint(folder / "model", seed, rows)
    tables = [Table(layer, count, 256, (0, count)) for layer, count in rows.items()]
    for rank in range(tp):
        asked = request("pack", str(made.path), str(folder), slices(tables, rank, tp, "rows"))
        done = subprocess.run(PYTHON, input=script(asked), capture_output=True, check=False)
        assert done.returncode == 0, done.stdout
    for layer, count in rows.items():
        whole = b""
        for rank in range(tp):
            first, end = shard_range(count, (0, count), "rows", rank, tp)
            body = (folder / f"engram-l{layer}-r{rank}of{tp}.bin").read_bytes()[4096:]
            assert body == made.records(layer, first, end)
            whole += body
        assert len(whole) == 264 * count


def test_packed_once_is_packed(made: Made, tmp_path: Path) -> None:
    pack(made.path, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("engram-*")}
    assert states(pack(made.path, tmp_path)) == ["whole", "whole"]
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("engram-*")}
    assert len(before) == 4


def test_another_checkpoints_shards_are_not_written_over(made: Made, tmp_path: Path) -> None:
    """Their headers differ by a name: the same shapes, other bytes, maybe."""
    pack(made.path, tmp_path / "out")
    before = contents(tmp_path / "out")
    other = make_checkpoint(tmp_path / "other", seed=2)
    path = other.path / "model-00003-of-00003.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"pt"', b'"np"'))
    said = problem(pack(other.path, tmp_path / "out"))
    assert "engram-l14-r0of4.json: it is of another shard: sources is " in said
    assert "--replace" in said
    assert contents(tmp_path / "out") == before
    assert states(pack(other.path, tmp_path / "out", replace=True)) == ["packed", "packed"]
    data = (tmp_path / "out/engram-l14-r0of4.bin").read_bytes()
    assert data[4096:] == other.records(14, 0, ROWS[14] // 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "not a manifest of ours"),
        ('{"name": "x"}', "not a manifest of ours"),
    ],
)
def test_a_damaged_manifest_is_not_written_over(
    made: Made, tmp_path: Path, text: str, said: str
) -> None:
    pack(made.path, tmp_path)
    (tmp_path / "engram-l1-r0of4.json").write_text(text)
    assert f"engram-l1-r0of4.json: it is {said}" in problem(pack(made.path, tmp_path))
    found = problem(pack(made.path, tmp_path, mode="verify"))
    assert f"its manifest is {said}" in found
    assert states(pack(made.path, tmp_path, replace=True)) == ["packed", "packed"]
    assert states(pack(made.path, tmp_path, mode="verify")) == ["verified", "verified"]


def test_a_cut_off_shard_is_not_whole(made: Made, tmp_path: Path) -> None:
    pack(made.path, tmp_path)
    os.truncate(tmp_path / "engram-l1-r0of4.bin", 5000)
    assert "not all of its bytes" in problem(pack(made.path, tmp_path))
    assert states(pack(made.path, tmp_path, replace=True)) == ["packed", "packed"]


def test_a_shard_without_a_manifest_is_not_taken_for_whole(made: Made, tmp_path: Path) -> None:
    pack(made.path, tmp_path)
    (tmp_path / "engram-l1-r0of4.json").unlink()
    assert "a shard without a manifest" in problem(pack(made.path, tmp_path))


def test_the_program_reads_on_the_oldest_python_it_names() -> None:
    for path in files("tetraspark.engram.inside").iterdir():
        if path.name.endswith(".py"):
            ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_ranks_of_the_made_checkpoint_differ_by_split(made: Made) -> None:
    tables = read_tables((made.path / "config.json").read_text())
    ranges = {
        split: [one.rows for one in slices(tables, 1, 3, split)] for split in ("rows", "columns")
    }
    assert ranges["rows"] != ranges["columns"]
