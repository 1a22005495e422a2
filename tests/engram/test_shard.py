"""What a node's own shards must be, from manifests and sizes alone."""

import json
from typing import Any

import pytest

from tetraspark.doctor.check import Check
from tetraspark.engram.shard import manifests, shard_checks, shard_name, wanted
from tetraspark.fleet.facts import Facts

FOLDER, HOME = "~/engram", "/home/alice"
HASH = "ab" * 32


def manifest(layer: int, rank: int, tp: int = 4, **changes: Any) -> dict[str, Any]:
    """One of a table of 4,000 rows in equal parts."""
    rows = [4000 * rank // tp, 4000 * (rank + 1) // tp]
    return {
        "format": 1,
        "layer": layer,
        "layers": [1, 14],
        "rank": rank,
        "tp": tp,
        "split": "rows",
        "rows": rows,
        "table_rows": 4000,
        "columns": [],
        "weight": {"tensor": f"layers.{layer}.w", "dtype": "F8_E4M3", "bytes": 256},
        "scale": {"tensor": f"layers.{layer}.s", "dtype": "F8_E8M0", "bytes": 8},
        "row_bytes": 264,
        "header_bytes": 4096,
        "bytes": 4096 + 264 * (rows[1] - rows[0]),
        "sources": [{"file": "a.safetensors", "size": 1, "header_sha256": HASH}],
        "sha256": HASH,
        "samples": [[rows[0], HASH]],
    } | changes


def facts(files: dict[str, Any], sizes: dict[str, int]) -> Facts:
    """The folder of a node: manifests (or texts) and the sizes of the other files."""
    texts = {
        f"{HOME}/engram/{name}.json": one if isinstance(one, str) else json.dumps(one)
        for name, one in files.items()
    }
    paths = {f"{HOME}/engram/{name}": size for name, size in sizes.items()}
    everything = tuple(sorted({*texts, *paths}))
    globs = {"~/engram/engram-l*": everything}
    return Facts("spark3", HOME, 1000, 0.0, texts, {}, paths, globs, {}, {}, {})


def whole(rank: int, **changes: Any) -> Facts:
    files = {shard_name(layer, rank, 4): manifest(layer, rank, **changes) for layer in (1, 14)}
    return facts(files, {f"{name}.bin": one["bytes"] for name, one in files.items()})


def check(found: Facts, rank: int = 2, split: Any = None) -> dict[str, Check]:
    return {one.id: one for one in shard_checks("spark3", FOLDER, rank, 4, found, split)}


def failed(found: dict[str, Check]) -> dict[str, str]:
    return {id: one.observed for id, one in found.items() if one.verdict == "failed"}


def test_a_probe_looks_at_the_ranks_own_manifests_and_at_all_sizes() -> None:
    found = wanted(FOLDER, 2, 4)
    assert found.files == ("~/engram/engram-l*-r2of4.json",)
    assert found.sizes == ("~/engram/engram-l*",)


def test_the_right_shards_pass_every_check() -> None:
    found = check(whole(2), split="rows")
    assert set(found) == {"ENGRAM.MANIFEST", "ENGRAM.ROWS", "ENGRAM.SIZE"}
    assert {one.verdict for one in found.values()} == {"ok"}
    assert found["ENGRAM.ROWS"].observed == "layer 1: 2000 to 3000, layer 14: 2000 to 3000"
    assert [one.layer for one in manifests(FOLDER, 2, 4, whole(2))] == [1, 14]


def test_L26_wrong_rank_rows_are_named_with_both_ranks() -> None:
    """Rank 2's file with rank 0's rows: the node would silently answer with wrong rows."""
    found = check(whole(2, rows=[0, 1000]))
    text = failed(found)["ENGRAM.ROWS"]
    assert "engram-l14-r2of4 is a wrong-rank shard: rows 0 to 1000, those of rank 0" in text
    assert "rank 2 has rows 2000 to 3000" in text
    assert found["ENGRAM.ROWS"].fix == "tetraspark pack --node spark3 --replace"


def test_L26_wrong_rank_shard_under_another_ranks_name() -> None:
    name = shard_name(14, 2, 4)
    found = facts({name: manifest(14, 0)}, {f"{name}.bin": 4096 + 264000})
    assert (
        "wrong-rank shard: its manifest is of layer 14, rank 0 of 4"
        in failed(check(found))["ENGRAM.ROWS"]
    )


def test_L26_a_manifest_that_says_too_little_is_none() -> None:
    text = '{"layer":14,"rank":2,"tp":4,"rows":[0,1000],"sha256":"…"}'
    found = check(facts({shard_name(14, 2, 4): text}, {}))
    assert list(found) == ["ENGRAM.MANIFEST"]
    assert "engram-l14-r2of4.json: format: " in failed(found)["ENGRAM.MANIFEST"]


def test_another_ranks_shards_do_not_count() -> None:
    names = {"engram-l1-r0of4": manifest(1, 0)}
    found = check(facts(names, {"engram-l1-r0of4.bin": 1}))
    observed = failed(found)["ENGRAM.MANIFEST"]
    assert "there: engram-l1-r0of4.bin, engram-l1-r0of4.json" in observed
    assert found["ENGRAM.MANIFEST"].wanted == "shards of rank 2 of 4 in ~/engram"


def test_another_tp_does_not_count() -> None:
    name = shard_name(1, 2, 4)
    found = check(facts({name: manifest(1, 2, tp=8)}, {}))
    assert "rank 2 of 8" in failed(found)["ENGRAM.ROWS"]


def test_the_other_engines_split_is_another_shard() -> None:
    found = check(whole(2), split="columns")
    assert "split by rows; the site's engine splits by columns" in failed(found)["ENGRAM.ROWS"]


def test_a_layer_without_a_shard_is_missed() -> None:
    name = shard_name(1, 2, 4)
    found = check(facts({name: manifest(1, 2)}, {f"{name}.bin": 4096 + 264000}))
    assert failed(found) == {"ENGRAM.MANIFEST": "engram-l14-r2of4.json is not there"}


def test_nothing_is_not_taken_for_something() -> None:
    found = check(facts({}, {}))
    assert failed(found) == {"ENGRAM.MANIFEST": "no shards"}
    assert found["ENGRAM.MANIFEST"].fix == "tetraspark pack --node spark3"


def test_an_unfinished_shard_is_not_taken_for_a_whole_one() -> None:
    found = check(facts({}, {"engram-l1-r2of4.bin.part": 4096}))
    assert failed(found) == {"ENGRAM.MANIFEST": "no manifest; unfinished: engram-l1-r2of4.bin.part"}


@pytest.mark.parametrize("size", [None, 0, 4096 + 264 * 999, 4096 + 264 * 1001])
def test_a_shard_of_another_size_is_refused(size: int | None) -> None:
    found = whole(2)
    sizes = dict(found.sizes)
    path = f"{HOME}/engram/engram-l14-r2of4.bin"
    del sizes[path]
    if size is not None:
        sizes[path] = size
    changed = Facts("spark3", HOME, 0, 0.0, found.files, {}, sizes, found.globs, {}, {}, {})
    text = failed(check(changed))["ENGRAM.SIZE"]
    assert text.startswith("engram-l14-r2of4.bin ")
    assert (str(size) if size is not None else "not there") in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Invalid JSON"),
        ("[]", "an object"),
        (json.dumps(manifest(1, 2) | {"format": 2}), "format 2, not 1"),
        (json.dumps(manifest(1, 2) | {"bytes": 5}), "bytes is not a header and the rows"),
        (json.dumps(manifest(1, 2) | {"columns": [0, 5]}), "columns do not end"),
        (json.dumps(manifest(1, 2) | {"sha256": "x"}), "sha256"),
        (json.dumps(manifest(1, 2) | {"rank": "2"}), "rank: "),
        (json.dumps(manifest(1, 2) | {"why": 1}), "why: "),
    ],
)
def test_a_broken_manifest_is_no_manifest(text: str, words: str) -> None:
    found = check(facts({shard_name(1, 2, 4): text}, {}))
    assert words in failed(found)["ENGRAM.MANIFEST"]
    assert "engram-l1-r2of4.json: " in failed(found)["ENGRAM.MANIFEST"]
