"""Verification of nodes against each other, a receipt and a file of sums."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.weights.checkpoints import Nodes, shard_name, write_checkpoint
from tetraspark.errors import RunError, UsageError
from tetraspark.weights.compare import Reference
from tetraspark.weights.place import Place
from tetraspark.weights.receipt import NAME, read_receipt
from tetraspark.weights.sums_file import parse_sums, read_sums
from tetraspark.weights.verify import Verification, Wish, verify

NODES = ("head", "two", "three")


class Bench:
    """Three nodes with the same checkpoint, in folders of their own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model"
        self.receipt = folder / "state" / NAME
        write_checkpoint(self.folder("head"))
        for node in NODES[1:]:
            shutil.copytree(self.folder("head"), self.folder(node))
        self.place = Place("line", str(self.path), "copy", NODES, NODES)

    def folder(self, node: str) -> Path:
        return self.path.with_name(f"model.{node}")

    def verify(self, wish: Wish = Wish(), nodes: tuple[str, ...] = NODES) -> Verification:  # noqa: B008 frozen
        runner = Nodes(self.path)
        return verify(self.place, runner, self.receipt, lambda _: None, wish, nodes)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_nodes_that_are_the_same_give_a_receipt(bench: Bench) -> None:
    found = bench.verify()
    assert found.ok and found.recorded and found.reference == "head"
    receipt = read_receipt(bench.receipt)
    assert receipt is not None and set(receipt.nodes) == set(NODES)
    assert receipt.nodes["two"].folder == str(bench.folder("two"))
    assert receipt.sums["config.json"] == sha256(bench.folder("head") / "config.json")


def test_a_changed_byte_names_file_node_and_both_hashes(bench: Bench) -> None:
    shard = bench.folder("three") / shard_name(2)
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    (bench.folder("two") / "config.json").unlink()
    found = bench.verify()
    assert not found.recorded and not bench.receipt.exists()
    missing, changed = found.problems
    assert (missing.where, missing.seen) == (f"two {bench.folder('two')}/config.json", "missing")
    assert changed.where == f"three {shard}"
    assert changed.seen == f"sha256 {sha256(shard)}, {len(data)} bytes"
    assert changed.wanted == f"sha256 {sha256(bench.folder('head') / shard.name)} of head"
    assert changed.fix == "tetraspark weights copy --node three"


def test_the_receipt_judges_the_head_too_until_it_is_renewed(bench: Bench) -> None:
    bench.verify()
    for node in NODES:
        (bench.folder(node) / "config.json").write_text("{}")
    refused = bench.verify()
    assert len(refused.problems) == 3
    assert "weights verify --renew" in refused.problems[0].fix
    renewed = bench.verify(Wish(renew=True))
    assert renewed.ok and renewed.recorded
    receipt = read_receipt(bench.receipt)
    assert receipt is not None
    assert receipt.sums["config.json"] == hashlib.sha256(b"{}").hexdigest()


def test_without_the_head_there_is_no_new_receipt(bench: Bench) -> None:
    found = bench.verify(nodes=("two", "three"))
    assert found.ok and not found.recorded and not bench.receipt.exists()


def test_a_file_of_sums_is_another_witness(bench: Bench, tmp_path: Path) -> None:
    shard = bench.folder("head") / shard_name(1)
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"# published\n{sha256(shard)} *./{shard.name}\n")
    reference = Reference(str(sums), read_sums(sums))
    assert bench.verify(Wish(sums=reference)).ok
    sums.write_text(f"{'0' * 64}  {shard.name}\n")
    found = bench.verify(Wish(sums=Reference(str(sums), read_sums(sums))))
    assert [one.where.split()[0] for one in found.problems] == list(NODES)
    assert f"sha256 {'0' * 64} of {sums}" == found.problems[0].wanted


def test_files_of_ones_own_are_listed_and_no_fault(bench: Bench) -> None:
    (bench.folder("two") / "notes.txt").write_text("mine")
    assert bench.verify().extra == {"two": ["notes.txt"]}


@pytest.mark.parametrize(("empty", "seen"), [(True, "an empty folder"), (False, "no such folder")])
def test_a_folder_that_is_not_there_is_never_the_same(bench: Bench, empty: bool, seen: str) -> None:
    for node in NODES:
        shutil.rmtree(bench.folder(node))
        if empty:
            bench.folder(node).mkdir()
    found = bench.verify()
    assert [one.seen for one in found.problems] == [seen] * 3
    assert not found.recorded


@pytest.mark.parametrize("change", [{"format": 2}, {"tree": "0"}, {"files": []}, {"nodes": 1}])
def test_a_damaged_receipt_is_refused_and_kept(bench: Bench, change: dict[str, object]) -> None:
    bench.verify()
    text = json.dumps(json.loads(bench.receipt.read_text()) | change)
    bench.receipt.write_text(text)
    with pytest.raises(RunError, match="not readable"):
        bench.verify()
    assert bench.receipt.read_text() == text


def test_lines_that_are_no_sums_are_all_named() -> None:
    text = f"{'a' * 64}  one\nnonsense\n\n{'b' * 64}  one\n{'c' * 63}  two\n"
    with pytest.raises(UsageError) as caught:
        parse_sums(text, "SUMS")
    assert [one.where for one in caught.value.problems] == ["SUMS:2", "SUMS:4", "SUMS:5"]
    with pytest.raises(UsageError, match="no hashes"):
        parse_sums("# nothing\n", "SUMS")
