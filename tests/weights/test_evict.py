"""L43: the page cache of a checkpoint is given back by its owner, without root."""

import re
import subprocess
from pathlib import Path

from tests.weights.checkpoints import Here, shard_name, write_checkpoint
from tetraspark.errors import RunError
from tetraspark.weights.evict import Evicted, evict
from tetraspark.weights.node_program import script

SIZE = 8 << 20


def cached(file: Path) -> int:
    """Return how many bytes of a file are in the page cache."""
    argv = ["fincore", "--bytes", "--noheadings", "--output", "RES", str(file)]
    return int(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)


def test_L43_clean_pages_of_the_checkpoint_leave_the_cache(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", SIZE)
    shards = [folder / shard_name(number) for number in (1, 2, 3)]
    other = tmp_path / "other"
    other.write_bytes(b"x" * SIZE)
    assert all(cached(shard) >= SIZE for shard in shards)
    found = evict(str(folder), Here(), ["node1"], lambda _: None)["node1"]
    assert isinstance(found, Evicted)
    assert [cached(shard) for shard in shards] == [0, 0, 0]
    assert cached(other) == SIZE, "a file of somebody else was evicted"
    assert found.files == len(list(folder.iterdir()))
    assert found.bytes == sum(one.stat().st_size for one in folder.iterdir())
    assert 0 < found.before["MemFree"] < found.before["MemTotal"]
    assert found.freed == found.after["MemFree"] - found.before["MemFree"]


def test_L43_nothing_of_it_asks_for_root() -> None:
    assert not re.search(r"sudo|drop_caches", script("evict", {"folder": "~"}).decode())


def test_a_node_without_the_folder_is_told(tmp_path: Path) -> None:
    found = evict(str(tmp_path / "absent"), Here(), ["node1"], lambda _: None)["node1"]
    assert isinstance(found, RunError)
    assert found.problems[0].seen == "no such folder"
