"""The GPU script in its CPU mode: the same comparisons with small sizes."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("indexer_split.py")


def test_the_script_finds_a_split_step_equal_on_the_cpu() -> None:
    result = subprocess.run(
        [sys.executable, str(SCRIPT), "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert {(one["dtype"], one["ties"], one["world"]) for one in found["compared"]} == {
        (dtype, ties, world)
        for dtype in ("torch.float32", "torch.bfloat16")
        for ties in (False, True)
        for world in (1, 2, 3, 4)
    }
    assert all(one["int32_only"] for one in found["compared"])
    assert not any(rows for one in found["compared"] for rows in one["differing_rows"].values())
    assert {one["tile_rows"] for one in found["compared"]} > {140}
    assert found["row_dependence"] == []
    assert [one["columns"] for one in found["times"]] == [200]
    assert all(one["unsplit_ms"] > 0 and one["share_ms"] > 0 for one in found["times"])
