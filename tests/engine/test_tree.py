import shutil
import zipfile
from pathlib import Path

import pytest

from tests.engine.memory_tree import INSTALLED
from tetraspark.engine.tree import TreeError, WheelTree, open_tree

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
