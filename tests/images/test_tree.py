"""The tree hash, here and as a node computes it."""

import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.images import tree
from tetraspark.images.tree import entries_of, sha256_of_entries, tree_sha256

SCRIPT = Path(tree.__file__).read_text()
NAMES = st.text(
    st.characters(min_codepoint=33, exclude_characters="/\0", exclude_categories=["Cs"]),
    min_size=1, max_size=8,
).filter(lambda name: name not in (".", ".."))  # fmt: skip
FILES = st.dictionaries(
    st.tuples(st.sampled_from(["", "a/", "a/b/", "z é/"]), NAMES).map("".join),
    st.tuples(st.binary(max_size=40), st.sampled_from([0o644, 0o755])),
    min_size=1,
    max_size=5,
)


def write(folder: Path, files: dict[str, tuple[bytes, int]]) -> None:
    for name, (content, mode) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            path.write_bytes(content)
            path.chmod(mode)


def on_a_node(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as ssh would: from stdin, isolated, in a plain environment."""
    return subprocess.run(
        ["/usr/bin/env", "-i", "LC_ALL=C", "python3", "-", str(folder)],
        input=SCRIPT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )


@settings(max_examples=15, deadline=None)
@given(FILES)
def test_a_node_computes_the_same_hash(files: dict[str, tuple[bytes, int]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, {path: files[path] for path in sorted(files) if path not in ("a", "z é")})
        here = tree_sha256(folder)
        assert on_a_node(folder).stdout == f"{here}\n"
        assert here == sha256_of_entries(reversed(entries_of(folder)))


def change_content(folder: Path) -> None:
    (folder / "a/one").write_bytes(b"ONE")


def change_mode(folder: Path) -> None:
    (folder / "a/one").chmod(0o755)


def rename(folder: Path) -> None:
    (folder / "a/one").rename(folder / "a/two")


def add(folder: Path) -> None:
    (folder / "extra").write_bytes(b"")


@pytest.mark.parametrize("change", [change_content, change_mode, rename, add])
def test_whatever_counts_changes_the_hash(tmp_path: Path, change: object) -> None:
    write(tmp_path, {"a/one": (b"one", 0o644), "b": (b"", 0o644)})
    before = tree_sha256(tmp_path)
    assert callable(change)
    change(tmp_path)
    assert tree_sha256(tmp_path) != before


def test_times_and_empty_folders_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, {"a/one": (b"one", 0o644)})
    before = tree_sha256(tmp_path)
    os.utime(tmp_path / "a/one", (1, 1))
    (tmp_path / "empty").mkdir()
    assert tree_sha256(tmp_path) == before


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def folder_link(path: Path) -> None:
    path.symlink_to("/etc")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [link, folder_link, pipe, listening])
def test_what_is_no_file_is_refused_here_and_there(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "odd")
    with pytest.raises(ValueError, match="odd is neither a file nor a folder"):
        tree_sha256(tmp_path)
    found = on_a_node(tmp_path)
    assert found.returncode == 1 and "odd" in found.stderr and not found.stdout


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    found = on_a_node(tmp_path / "none")
    assert found.returncode == 1 and "not a folder" in found.stderr
