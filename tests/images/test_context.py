"""Build contexts: what is written was hashed, and what was changed is refused."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.errors import RunError, UsageError
from tetraspark.images.cache import Cache
from tetraspark.images.context import EPOCH, BuildContext, ContextFile, write_context
from tetraspark.images.tree import tree_sha256


def context(cache: Cache, contents: list[bytes]) -> BuildContext:
    files = tuple(
        ContextFile.made(f"files/{n}", content, cache, 0o755 if n == 1 else 0o644)
        for n, content in enumerate(contents)
    )
    return BuildContext(
        recipe="base", tag="t:1", base="b@sha256:0", platform="linux/arm64", dockerfile="files/0",
        dockerfile_text="", files=files, build_args=(), labels=(), network="none",
    )  # fmt: skip


CONTENTS = [b"FROM scratch\n", b"#!/bin/sh\n", b"x" * 3000]


def test_the_folder_is_the_value(tmp_path: Path) -> None:
    made = context(Cache(tmp_path / "cache"), CONTENTS)
    folder = tmp_path / "deep" / "context"
    assert write_context(made, folder) == made.tree_sha256 == tree_sha256(folder)
    assert [path.read_bytes() for path in sorted((folder / "files").iterdir())] == CONTENTS
    modes = [path.stat().st_mode & 0o777 for path in sorted((folder / "files").iterdir())]
    assert modes == [0o644, 0o755, 0o644]
    assert {path.stat().st_mtime for path in (folder / "files").iterdir()} == {EPOCH}
    assert folder.stat().st_mode & 0o777 == 0o755
    assert made.as_dict()["tree_sha256"] == made.tree_sha256


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=4),
    st.data(),
)
def test_any_flipped_byte_is_refused(contents: list[bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = context(Cache(Path(name, "cache")), contents)
        victim = data.draw(st.sampled_from(made.files))
        body = bytearray(victim.source.read_bytes())
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] ^= data.draw(st.integers(1, 255))
        victim.source.write_bytes(body)
        folder = Path(name, "context")
        with pytest.raises(RunError) as caught:
            write_context(made, folder)
        assert victim.sha256 in str(caught.value) and "--verify" in str(caught.value)
        assert not folder.exists()
        assert [path.name for path in Path(name).iterdir()] == ["cache"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=30), min_size=1, max_size=3), st.data())
def test_any_change_of_the_written_tree_changes_its_hash(
    contents: list[bytes], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = context(Cache(Path(name, "cache")), contents)
        folder = Path(name, "context")
        write_context(made, folder)
        victim = data.draw(st.sampled_from(sorted((folder / "files").iterdir())))
        victim.write_bytes(victim.read_bytes() + data.draw(st.binary(min_size=1, max_size=3)))
        assert tree_sha256(folder) != made.tree_sha256


def test_every_changed_or_missing_file_is_named_at_once(tmp_path: Path) -> None:
    made = context(Cache(tmp_path / "cache"), CONTENTS)
    made.files[0].source.write_bytes(b"FROM else\n")
    made.files[2].source.unlink()
    with pytest.raises(RunError) as caught:
        write_context(made, tmp_path / "context")
    changed, missing = caught.value.problems
    assert "files/0" in changed.wanted and "files/2" in missing.wanted
    assert "No such file" in missing.seen


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    made = context(Cache(tmp_path / "cache"), CONTENTS)
    (tmp_path / "context").mkdir()
    write_context(made, tmp_path / "context")
    (tmp_path / "context" / "mine").write_text("kept")
    with pytest.raises(UsageError, match="an empty folder"):
        write_context(made, tmp_path / "context")
    assert (tmp_path / "context" / "mine").read_text() == "kept"


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out"])
def test_a_path_that_leaves_the_context_is_a_fault_of_ours(tmp_path: Path, path: str) -> None:
    cache = Cache(tmp_path / "cache")
    with pytest.raises(ValueError, match="leaves the context"):
        ContextFile.made(path, b"x", cache)


def test_two_files_of_one_path_are_refused(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    one = ContextFile.made("a", b"1", cache)
    with pytest.raises(ValueError, match="a twice"):
        BuildContext(
            recipe="base", tag="t", base="b", platform="linux/arm64", dockerfile="a",
            dockerfile_text="", files=(one, one), build_args=(), labels=(), network="none",
        )  # fmt: skip


def test_the_cache_mends_a_file_that_is_put_there_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    sha256 = cache.add(b"one")
    cache.path(sha256).write_bytes(b"two")
    assert cache.add(b"one") == sha256
    assert cache.path(sha256).read_bytes() == b"one" and len(list(tmp_path.iterdir())) == 1
