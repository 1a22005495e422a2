"""Files that a person names: what is refused to be read, and what is never written over."""

import json
from pathlib import Path

import pytest

from tests.fabric import example
from tetraspark.errors import UsageError
from tetraspark.fabric.inventory_file import load_inventory
from tetraspark.fabric.saved_file import OutputFile


def said(path: Path) -> str:
    with pytest.raises(UsageError) as error:
        load_inventory(path)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"[" * 200_000, "not JSON: nested too deeply"),
        (b"\xff{}", "byte 0 is not UTF-8; wanted: a saved inventory"),
        (b'{"schema": ' + b"1" * 5000 + b"}", "not JSON: a number of 5000 digits"),
        (b'{"schema": NaN}', "not JSON: NaN is no number of JSON"),
        (b'{"schema": "\\ud800"}', "not JSON: half of a surrogate pair"),
    ],
)
def test_what_is_no_json_is_told_in_our_words(tmp_path: Path, text: bytes, says: str) -> None:
    file = tmp_path / "fabric.json"
    file.write_bytes(text)
    assert says in said(file)


def test_a_node_that_nothing_is_known_of_is_named(tmp_path: Path) -> None:
    value = example.inventory().as_dict()
    del value["fabrics"]["spark2"]
    file = tmp_path / "fabric.json"
    file.write_text(json.dumps(value))
    assert f"{file}: 'spark2' is in `nodes`, and in neither `fabrics` nor `unseen`" in said(file)


def test_only_a_file_of_its_kind_is_replaced_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    target = OutputFile(file, "--out", "a plan", lambda text: text.startswith("plan"))
    target.write("plan 1")
    file.chmod(0o640)
    target.write("plan 2")
    assert file.read_text() == "plan 2" and file.stat().st_mode & 0o777 == 0o640
    file.write_text("a letter")
    with pytest.raises(UsageError, match="it exists and is not a plan"):
        target.write("plan 3")
    assert file.read_text() == "a letter" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("place", "says"), [("none/a", "no folder"), (".", "a folder")])
def test_a_place_that_is_none_is_told_before_the_work(
    tmp_path: Path, place: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        OutputFile(tmp_path / place, "--out", "a plan", bool).require()
