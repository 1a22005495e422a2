"""A checkpoint's folder as a node's program sees it: whole, or with what is wrong named."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.serving import ROOT
from tests.weights.checkpoints import checks_of, facts_of, shard_name, write_checkpoint, write_shard
from tetraspark.weights.checkpoint import checkpoint_checks, wanted
from tetraspark.weights.folder import read_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "with [brackets]*")


def test_a_whole_checkpoint_passes_every_check(folder: Path) -> None:
    checks = checks_of(folder)
    assert {check.verdict for check in checks.values()} == {"ok"}
    assert checks["SHARDS"].observed == "3 shards, each whole"
    assert checks["CHAT_TEMPLATE"].observed == "from chat_template.jinja"


def test_the_bundled_model_passes_every_check() -> None:
    assert {check.verdict for check in checks_of(ROOT / "models/tiny").values()} == {"ok"}


def test_missing_empty_truncated_and_overlong_shards_are_named(folder: Path) -> None:
    first, second, third = (folder / shard_name(number) for number in (1, 2, 3))
    size = first.stat().st_size
    os.truncate(first, size - 1)
    os.truncate(second, 0)
    third.unlink()
    checks = checks_of(folder)
    assert checks["SHARDS"].verdict == checks["SIZE"].verdict == "failed"
    assert checks["SHARDS"].observed == (
        f"{third.name} missing; {first.name} truncated: {size - 1} of {size} bytes; "
        f"{second.name} empty"
    )
    with first.open("ab") as file:
        file.write(b"xy")
    assert f"{first.name} too long: {size + 1} of {size}" in checks_of(folder)["SHARDS"].observed


def test_shards_without_a_byte_are_no_size_though_nothing_counts_them(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"metadata": {}}))
    assert checks_of(folder)["SIZE"].verdict == "ok"
    for number in (1, 2, 3):
        os.truncate(folder / shard_name(number), 0)
    check = checks_of(folder)["SIZE"]
    assert (check.verdict, check.observed) == ("failed", "0 bytes in the shards")


def test_a_shard_cut_within_its_header_is_named(folder: Path) -> None:
    os.truncate(folder / shard_name(2), 20)
    text = f"{shard_name(2)} 20 bytes without a header that can be read"
    assert checks_of(folder)["SHARDS"].observed == text


def test_a_shard_that_the_index_does_not_name_is_a_warning(folder: Path) -> None:
    write_shard(folder / "consolidated.safetensors", "all", 10, 0)
    check = checks_of(folder)["SHARDS"]
    assert (check.verdict, check.observed[:24]) == ("warning", "consolidated.safetensors")


def test_an_index_longer_than_a_probe_reads_still_finds_the_missing_shard(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    weights = {f"layers.{n}.weight.of.some.length": shard_name(n % 3 + 1) for n in range(5000)}
    index.write_text(json.dumps({"metadata": {"total_size": 3000}, "weight_map": weights}))
    assert index.stat().st_size > 4 * 65536
    assert checks_of(folder)["SHARDS"].verdict == "ok"
    (folder / shard_name(3)).unlink()
    assert checks_of(folder)["SHARDS"].observed == f"{shard_name(3)} missing"


@pytest.mark.parametrize("text", ["", "[]", '{"weight_map": {}}', "{" * 3000])
def test_an_index_that_cannot_be_read_is_named(folder: Path, text: str) -> None:
    (folder / "model.safetensors.index.json").write_text(text)
    assert "model.safetensors.index.json: cannot" in checks_of(folder)["SHARDS"].observed


def test_config_and_tokenizer_are_asked_for(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    (folder / "tokenizer.json").unlink()
    checks = checks_of(folder)
    assert checks["CONFIG"].observed == "config.json: not a JSON object"
    assert "tokenizer.json or tokenizer.model" in checks["TOKENIZER"].observed


def test_links_that_a_container_cannot_follow_are_named(folder: Path, tmp_path: Path) -> None:
    """The layout of a download cache: the folder holds links into another one."""
    blob = tmp_path / "blobs" / "abc"
    blob.parent.mkdir()
    shutil.move(folder / shard_name(1), blob)
    (folder / shard_name(1)).symlink_to(f"../blobs/{blob.name}")
    (folder / "alias").symlink_to("config.json")
    check = checks_of(folder)["LINKS"]
    assert check.verdict == "failed"
    assert check.observed.startswith("1 links lead out of")
    assert check.observed.endswith(f"{shard_name(1)} -> {blob}")


def test_L13_the_expanded_folder_is_shown_and_asked_for_on_each_node() -> None:
    path = "~/no/such/checkpoint"
    facts = facts_of(path)
    (check,) = checkpoint_checks("node2", path, facts)
    assert (check.node, check.verdict) == ("node2", "failed")
    assert check.observed == f"{facts.home}/no/such/checkpoint: no such folder"
    assert path in check.wanted and "~" not in check.observed
    assert read_checkpoint(path, facts).folder == f"{facts.home}/no/such/checkpoint"


TEMPLATE = '{"chat_template": "{{ messages }}"}'
BARE = '{"tokenizer_class":"PreTrainedTokenizerFast","eos_token":"<|end|>"}'
LONG = json.dumps({"added": "x" * 70_000, "chat_template": "{{ messages }}"})


@pytest.mark.parametrize(
    ("config", "tokenizer", "jinja", "verdict", "text"),
    [
        ({}, TEMPLATE, True, "ok", "from chat_template.jinja"),
        ({}, TEMPLATE, False, "ok", "from tokenizer_config.json"),
        ({}, BARE, False, "failed", "neither chat_template.jinja nor `chat_template`"),
        ({}, '{"chat_template": ""}', False, "failed", "neither"),
        ({}, LONG, False, "unknown", "too long for a probe"),
        ({"model_type": "deepseek_v41"}, BARE, False, "ok", "the engine's own encoder"),
        ({"architectures": ["DeepseekV4ForCausalLM"]}, BARE, True, "ok", "own encoder"),
        ({"architectures": ["DeepseekV3ForCausalLM"]}, TEMPLATE, False, "ok", "tokenizer_config"),
        ({"architectures": ["DeepseekV3ForCausalLM"]}, BARE, False, "ok", "for want of"),
    ],
)
def test_L62_the_file_that_supplies_the_chat_template_is_named(
    folder: Path, config: dict[str, object], tokenizer: str, jinja: bool, verdict: str, text: str
) -> None:
    (folder / "config.json").write_text(json.dumps({"architectures": ["Other"], **config}))
    (folder / "tokenizer_config.json").write_text(tokenizer)
    if not jinja:
        (folder / "chat_template.jinja").unlink()
    check = checks_of(folder)["CHAT_TEMPLATE"]
    assert check.verdict == verdict
    assert text in check.observed


def test_L62_a_template_that_only_processors_read_is_told(folder: Path) -> None:
    (folder / "chat_template.jinja").rename(folder / "chat_template.json")
    assert "chat_template.json is not read" in checks_of(folder)["CHAT_TEMPLATE"].observed


def test_two_checkpoints_can_be_looked_at_with_one_probe() -> None:
    both = wanted("/a") | wanted("~/b/")
    assert both.shards == ("/a/*.safetensors", "~/b/*.safetensors")
    assert both.space == ("/a", "~/b/")
