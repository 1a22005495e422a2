import io
import os
import re
import shutil
import zipfile
from pathlib import Path
from random import Random

import pytest

from tests.engine.memory_tree import INSTALLED
from tetraspark.engine.drift import inspect_all
from tetraspark.engine.hooks import TARGETS
from tetraspark.engine.pins import read_pins
from tetraspark.engine.tree import MEMBER_BYTES, TreeError, WheelTree, open_tree

METADATA = "Metadata-Version: 2.4\nName: {}\nVersion: 0.5.23\nRequires-Dist: torch==2.14.1\n"


def wheel(path: Path, name: str = "sglang", **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}-0.5.23.dist-info/METADATA", METADATA.format(name))
        for file, text in ({"sglang/srt/one.py": "def one():\n    pass\n"} | files).items():
            archive.writestr(file, text)
    return path


def test_a_wheel_is_read_where_it_lies(tmp_path: Path) -> None:
    tree = open_tree(wheel(tmp_path / "sglang-0.5.23-py3-none-any.whl"))
    assert tree.files() == ["srt/one.py"]
    assert tree.read("srt/one.py") == "def one():\n    pass\n"
    assert tree.read("srt/two.py") is None
    assert "Version: 0.5.23" in (tree.metadata() or "")
    assert [file.name for file in tmp_path.iterdir()] == ["sglang-0.5.23-py3-none-any.whl"]


def test_a_checkout_an_unpacked_wheel_and_the_package_are_the_same_folder(tmp_path: Path) -> None:
    package = tmp_path / "python" / "sglang"
    (package / "srt").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "srt" / "one.py").write_bytes(b"ONE = '\xff'\n")
    for named in (tmp_path, tmp_path / "python", package):
        assert open_tree(named).where == str(package)
    tree = open_tree(tmp_path)
    assert tree.read("srt/one.py") == "ONE = '\N{REPLACEMENT CHARACTER}'\n"
    assert tree.metadata() is None


def test_a_checkout_tells_its_requirements(tmp_path: Path) -> None:
    (tmp_path / "sglang" / "srt").mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").touch()
    project = tmp_path / "pyproject.toml"
    project.write_text("[project]\ndependencies = ['torch==2.14.1']\n")
    assert open_tree(tmp_path).metadata() == "Requires-Dist: torch==2.14.1"
    project.write_text("[project\n")
    assert open_tree(tmp_path).metadata() is None


def test_a_file_that_is_larger_than_any_of_an_engine_is_not_read(tmp_path: Path) -> None:
    source = tmp_path / "sglang" / "srt" / "one.py"
    source.parent.mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").touch()
    source.touch()
    os.truncate(source, 1 << 40)
    with pytest.raises(TreeError, match=rf"one\.py is larger; wanted: files of {MEMBER_BYTES}"):
        open_tree(tmp_path).read("srt/one.py")


def test_two_versions_beside_one_folder_make_neither_sure(tmp_path: Path) -> None:
    (tmp_path / "sglang" / "srt").mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").touch()
    for version in ("0.5.22", "0.5.23"):
        (tmp_path / f"sglang-{version}.dist-info").mkdir()
        (tmp_path / f"sglang-{version}.dist-info" / "METADATA").write_text("Name: sglang\n")
    assert open_tree(tmp_path).metadata() is None


def test_the_installed_engine_is_read_with_its_version() -> None:
    assert "\nVersion: 0.5.23\n" in (INSTALLED.metadata() or "")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="no such file"):
        open_tree(tmp_path / "absent.whl")


def test_a_folder_without_the_engine(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    with pytest.raises(TreeError, match="a folder without sglang"):
        open_tree(tmp_path)


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04 and no more"])
def test_what_is_no_wheel(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "sglang-0.5.23-py3-none-any.whl"
    file.write_bytes(data)
    with pytest.raises(TreeError, match="no zip archive"):
        open_tree(file)


def test_a_wheel_of_another_package(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="a wheel of torch"):
        open_tree(wheel(tmp_path / "w.whl", "torch"))


def test_a_zip_that_is_no_wheel(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "w"), "zip", Path(__file__).parent, "memory_tree.py")
    with pytest.raises(TreeError, match="but no wheel"):
        open_tree(tmp_path / "w.zip")


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
def test_a_wheel_cut_short(tmp_path: Path, cut: float) -> None:
    file = wheel(tmp_path / "w.whl", **{"sglang/big.py": "x = 1\n" * 10_000})
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * cut)])
    with pytest.raises(TreeError):
        open_tree(file)


def test_a_damaged_member_is_told_when_it_is_read(tmp_path: Path) -> None:
    file = wheel(tmp_path / "w.whl")
    data = bytearray(file.read_bytes())
    place = data.index(b"sglang/srt/one.py") + len("sglang/srt/one.py")
    data[place : place + 6] = b"\xff" * 6
    file.write_bytes(data)
    tree = WheelTree(file)
    with pytest.raises(TreeError, match=r"a damaged archive: sglang/srt/one\.py"):
        tree.read("srt/one.py")


SMALL = {
    "sglang/__init__.py": "",
    "sglang/srt/utils/auth.py": "def add_api_key_middleware(): pass\n" * 30,
    "sglang/srt/\N{LATIN SMALL LETTER E WITH ACUTE}.py": "class Scheduler:\n  def f(self): ...\n",
}


def archive(compression: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as file:
        file.writestr("sglang-0.5.23.dist-info/METADATA", METADATA.format("sglang"))
        for name, text in SMALL.items():
            file.writestr(name, text)
    return data.getvalue()


COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
ARCHIVES = {one: archive(one) for one in COMPRESSIONS}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_damaged_wheel_gives_a_report_or_a_refusal(tmp_path: Path, compression: int) -> None:
    chance = Random(compression)
    file, refused = tmp_path / "w.whl", 0
    for _ in range(250):
        data = bytearray(ARCHIVES[compression])
        for _ in range(chance.choice((1, 1, 2, 5))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)
        try:
            tree = open_tree(file)
            inspect_all(tree, TARGETS)
            read_pins(tree.metadata())
        except TreeError as error:
            refused += 1
            assert error.seen.isprintable()
    assert refused > 20


def test_a_flipped_byte_in_a_name_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "w.whl"
    file.write_bytes(ARCHIVES[zipfile.ZIP_STORED].replace(b"\xc3\xa9", b"\xff\xff"))
    with pytest.raises(TreeError, match="a damaged archive"):
        open_tree(file)


def test_two_distributions_in_one_wheel(tmp_path: Path) -> None:
    file = wheel(tmp_path / "w.whl", **{"x-1.dist-info/METADATA": "Name: x\n"})
    with pytest.raises(TreeError, match=r"2 METADATA files: sglang-.*, x-1\.dist-info/METADATA"):
        open_tree(file)


def test_a_member_larger_than_any_source_is_not_unpacked(tmp_path: Path) -> None:
    text = "#" * (MEMBER_BYTES + 1)
    tree = open_tree(wheel(tmp_path / "w.whl", **{"sglang/srt/big.py": text}))
    with pytest.raises(TreeError, match=r"sglang/srt/big\.py is 16777217 bytes"):
        tree.read("srt/big.py")


@pytest.mark.parametrize("name", ["SGLang", "sGlang"])
def test_the_name_of_a_package_has_no_case(tmp_path: Path, name: str) -> None:
    assert open_tree(wheel(tmp_path / "w.whl", name)).metadata() == METADATA.format(name)


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(TreeError, match="not a regular file"):
            open_tree(path)


def test_an_empty_path_is_not_this_folder() -> None:
    with pytest.raises(TreeError, match="no path"):
        open_tree("")


def package(folder: Path) -> Path:
    root = folder / "sglang"
    (root / "srt").mkdir(parents=True)
    (root / "__init__.py").touch()
    return root


def distribution(folder: Path, stem: str, name: str) -> Path:
    (folder / f"{stem}.dist-info").mkdir()
    file = folder / f"{stem}.dist-info" / "METADATA"
    file.write_text(METADATA.format(name))
    return file


@pytest.mark.parametrize("name", ["n" * 300, "loop", "loop/sglang"])
def test_what_the_system_refuses_is_told_with_what_to_look_at(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(TreeError) as refusal:
        open_tree(tmp_path / name)
    assert re.search("File name too long|Too many levels", refusal.value.seen)
    assert refusal.value.fix == f"ls -ld {tmp_path / name}"


def test_metadata_that_is_a_folder_is_told(tmp_path: Path) -> None:
    package(tmp_path)
    (tmp_path / "sglang-1.dist-info" / "METADATA").mkdir(parents=True)
    with pytest.raises(TreeError, match="METADATA: not a regular file") as refusal:
        open_tree(tmp_path).metadata()
    assert refusal.value.fix.startswith("ls -ld ")


def test_a_linked_package_keeps_its_metadata(tmp_path: Path) -> None:
    root = package(tmp_path / "site")
    distribution(tmp_path / "site", "sglang-0.5.23", "sglang")
    (tmp_path / "link").symlink_to(root)
    assert open_tree(tmp_path / "link").metadata() == METADATA.format("sglang")


def test_only_the_distribution_of_that_name_is_used(tmp_path: Path) -> None:
    package(tmp_path)
    distribution(tmp_path, "sglang-kernel-0.4.10", "sglang-kernel")
    assert open_tree(tmp_path).metadata() is None
    distribution(tmp_path, "SGLang-0.5.23", "SGLang")
    assert open_tree(tmp_path).metadata() == METADATA.format("SGLang")


def test_a_project_of_another_name_requires_nothing_of_the_engine(tmp_path: Path) -> None:
    package(tmp_path)
    project = tmp_path / "pyproject.toml"
    project.write_text("[project]\nname = 'vendor'\ndependencies = ['torch==1']\n")
    assert open_tree(tmp_path).metadata() is None


def test_what_a_wheel_says_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    text = "Name: \x1b[2Jevil\n"
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as file:
        file.writestr("e-1.dist-info/METADATA", text)
    with pytest.raises(TreeError) as refusal:
        open_tree(tmp_path / "w.whl")
    assert "\\x1b[2jevil" in refusal.value.seen and refusal.value.seen.isprintable()
