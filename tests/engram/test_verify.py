"""Verifying: every changed byte is found, all of it or the sample at a start."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.engram.checkpoint import ROWS, Made, make_checkpoint
from tests.engram.packing import pack, problem, states
from tetraspark.engram.layout import Table
from tetraspark.engram.plan import PYTHON, local_plan
from tetraspark.engram.program import script
from tetraspark.engram.request import Mode, request, slices
from tetraspark.engram.run import Here, run_plan
from tetraspark.engram.sample import verify_sample
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts


def test_a_sample_row_of_the_source_that_changes_is_seen_by_verify(
    made: Made, tmp_path: Path
) -> None:
    pack(made.path, tmp_path)
    assert states(pack(made.path, tmp_path, mode="verify")) == ["verified", "verified"]
    path = made.path / "model-00003-of-00003.safetensors"
    data = bytearray(path.read_bytes())
    data[-256 * ROWS[14]] ^= 1
    path.write_bytes(data)
    said = problem(pack(made.path, tmp_path, mode="verify"))
    assert "engram-l14-r0of4: row 0 of the checkpoint is another one" in said


@pytest.mark.parametrize(
    ("offset", "words"),
    [(0, "first page"), (4096, "row 0 is not"), (-1, "is not the one"), (4096 + 264, "bytes")],
)
def test_every_changed_byte_is_found(made: Made, tmp_path: Path, offset: int, words: str) -> None:
    """Of 1,000 rows 64 are samples: row 1 is none of them, and only the whole hash tells."""
    rows = {1: 4000, 14: 4000}
    big = make_checkpoint(tmp_path / "big", 3, rows)
    tables = [Table(layer, count, 256, (0, count)) for layer, count in rows.items()]

    def run(mode: Mode) -> list[dict[str, Any]]:
        asked = request(mode, str(big.path), str(tmp_path), slices(tables, 0, 4, "rows"))
        done = subprocess.run(PYTHON, input=script(asked), capture_output=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    run("pack")
    path = tmp_path / "engram-l1-r0of4.bin"
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)
    faults = {one["shard"]: one["faults"] for one in run("verify") if one["event"] == "verified"}
    assert len(faults["engram-l1-r0of4"]) == 1
    assert words in faults["engram-l1-r0of4"][0]
    assert faults["engram-l14-r0of4"] == []


def test_verify_writes_nothing_and_finds_nothing_in_an_empty_place(
    made: Made, tmp_path: Path
) -> None:
    report = pack(made.path, tmp_path / "o", mode="verify")
    assert [one.faults for one in report.nodes[0].shards] == [("no manifest",)] * 2
    assert len(report.problems) == 2
    assert not (tmp_path / "o").exists()


def facts_of(folder: Path) -> Facts:
    """What a probe would find in a folder."""
    files = {str(path): path.read_text() for path in folder.glob("*.json")}
    return Facts("spark1", "/root", 0, 0.0, files, {}, {}, {}, {}, {}, {})


def test_a_start_reads_the_sampled_rows(made: Made, tmp_path: Path) -> None:
    pack(made.path, tmp_path)
    facts, folder = facts_of(tmp_path), str(tmp_path)
    (check,) = verify_sample(Here().run, "spark1", folder, 0, 4, facts)
    assert (check.id, check.verdict) == ("ENGRAM.SAMPLE", "ok")
    path = tmp_path / "engram-l1-r0of4.bin"
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)
    (check,) = verify_sample(Here().run, "spark1", folder, 0, 4, facts)
    assert (check.verdict, check.observed) == (
        "failed",
        "engram-l1-r0of4: its first page is of another shard",
    )
    assert verify_sample(Here().run, "spark1", folder, 1, 4, facts) == []


def test_a_start_that_cannot_read_says_so(made: Made, tmp_path: Path) -> None:
    pack(made.path, tmp_path)

    class Without(Here):
        def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
            return Result(127, "", "python3: not found\n")

    facts = facts_of(tmp_path)
    (check,) = verify_sample(Without().run, "spark1", str(tmp_path), 0, 4, facts)
    assert (check.verdict, check.observed) == ("unknown", "python3: not found")
    report = run_plan(
        local_plan((made.path / "config.json").read_text(), "m", "o", 0, 4, "rows", "pack", False),
        Without(),
        lambda node, event: None,
    )
    assert "python3 ended with 127: python3: not found" in problem(report)
