"""Packing on this machine, and what comes of it."""

from pathlib import Path

from tetraspark.engram.layout import Split
from tetraspark.engram.manifest import Manifest, read_manifest
from tetraspark.engram.plan import local_plan
from tetraspark.engram.request import Mode
from tetraspark.engram.run import Here, PackReport, run_plan


def pack(
    model: Path,
    folder: Path,
    rank: int = 0,
    tp: int = 4,
    split: Split = "rows",
    mode: Mode = "pack",
    replace: bool = False,
) -> PackReport:
    text = (model / "config.json").read_text()
    plan = local_plan(text, str(model), str(folder), rank, tp, split, mode, replace)
    return run_plan(plan, Here(), lambda node, event: None)


def states(report: PackReport) -> list[str]:
    assert report.problems == ()
    return [one.state for node in report.nodes for one in node.shards]


def problem(report: PackReport) -> str:
    assert len(report.problems) == 1, report.problems
    return str(report.problems[0])


def manifest(folder: Path, layer: int, rank: int = 0, tp: int = 4) -> Manifest:
    return read_manifest((folder / f"engram-l{layer}-r{rank}of{tp}.json").read_text())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("engram-*")}


def pieces(text: bytes) -> bytes:
    """Change the program: 16 rows a chunk, and on the disk every 32 KiB."""
    for old, new in ((b"16 * GROUP", b"16"), (b"256 << 20", b"32 << 10")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text
