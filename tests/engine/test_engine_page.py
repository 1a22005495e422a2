"""The page on the engine: its hooks, its figures and its commands are those of the code."""

import json
import re
from pathlib import Path

from tetraspark.engine.hooks import HOOKS
from tetraspark.engine.paged_candidates import TILE_BYTES, row_bytes, rows_per_tile
from tetraspark.engine.row_partition import Partition
from tetraspark.engine.split_env import CONTEXT_FLOOR, ROWS_FLOOR

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engine.md").read_text()
PROSE = " ".join(PAGE.split())


def test_every_hook_is_in_the_table() -> None:
    table = "".join(line for line in PAGE.splitlines() if line.startswith("|"))
    for hook in HOOKS:
        assert f"`{'.'.join(hook.target.names)}`" in table, hook.target.path


def test_the_figures_are_the_codes() -> None:
    assert TILE_BYTES == 256 << 20
    bytes_a_row = row_bytes(1 << 20, 2048, 8)
    assert f"{bytes_a_row / 1e6:.1f} MB at 1,048,576 columns" in PROSE
    assert f"{rows_per_tile(96, 6, bytes_a_row)} rows a tile at six rows a request" in PROSE
    assert f"({CONTEXT_FLOOR:,} tokens, {ROWS_FLOOR:,} rows)" in PROSE
    assert Partition(4096, 4, 0).extent * 512 * 4 == 2 << 20


def test_the_receipt_is_json_and_its_share_is_the_partitions() -> None:
    receipt = json.loads(
        next(line for line in PAGE.splitlines() if "prefill_split" in line and "{" in line)
    )
    share = Partition(receipt["rows"], receipt["world"], receipt["rank"])
    assert (receipt["begin"], receipt["end"]) == (share.begin, share.end)


def test_its_commands_name_files_that_the_tests_run() -> None:
    files = re.findall(r"tests/\S+\.py", PAGE)
    assert len(files) >= 4
    assert all((ROOT / file).is_file() for file in files)
    assert (ROOT / "tests/gpu/test_indexer_split.py").is_file()
