"""The build cache: private, keyed, verified before each load."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from tetraspark.collectives import build as building
from tetraspark.collectives import verbs_native
from tetraspark.collectives.build import (
    PROXY,
    SOURCE,
    Unit,
    build,
    cache_dir,
    cache_key,
    compiler_version,
    find_compiler,
    trusted,
)
from tetraspark.collectives.failure import BuildError
from tetraspark.collectives.library import load
from tetraspark.collectives.native import ABI
from tetraspark.collectives.verbs_native import HEADER, UNIT


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Quick to compile: what is tested here is the cache.
    quick = tuple("-O0" if flag == "-O3" else flag for flag in building.FLAGS)
    monkeypatch.setattr(building, "FLAGS", quick)
    return tmp_path / "tetraspark" / "collectives"


def test_a_build_is_private_found_again_and_loads(cache: Path) -> None:
    library = build()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(library.stat().st_mode) == 0o700
    first = library.stat().st_ino
    assert build().stat().st_ino == first
    assert load(library).ts_next_sequence(1) == 2
    assert sorted(path.suffix for path in cache.iterdir()) == ["", ".sha256", ".so"]


@pytest.mark.parametrize("unit", [pytest.param(PROXY, id="proxy"), pytest.param(UNIT, id="verbs")])
def test_the_compiler_warns_of_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, unit: Unit
) -> None:
    if unit is UNIT and not HEADER.exists() and not os.environ.get("CI"):
        pytest.skip("no libibverbs here: apt-get install libibverbs-dev")
    monkeypatch.setattr(building, "FLAGS", (*building.FLAGS, "-O3", "-Wall", "-Wextra", "-Werror"))
    assert build(unit).exists()


def test_a_machine_without_libibverbs_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(verbs_native, "HEADER", tmp_path / "absent.h")
    with pytest.raises(BuildError, match=r"absent.h is missing; apt-get install libibverbs-dev"):
        verbs_native.verbs.__wrapped__()


def test_a_corrupted_file_is_built_again(cache: Path) -> None:
    library = build()
    whole = library.read_bytes()
    library.write_bytes(whole[:-100] + b"x" * 100)
    assert not trusted(library)
    assert build().read_bytes() == whole


def test_a_corrupted_digest_is_built_again(cache: Path) -> None:
    library = build()
    library.with_suffix(".sha256").write_bytes(b"\xff\xfe")
    assert not trusted(library)
    assert trusted(build())


@pytest.mark.parametrize("kind", ["symlink", "writable", "directory-mode"])
def test_what_others_could_have_made_is_not_loaded(cache: Path, kind: str) -> None:
    library = build()
    if kind == "symlink":
        library.rename(cache / "other.so")
        library.symlink_to(cache / "other.so")
        assert not trusted(library)
        assert not build().is_symlink()
    elif kind == "writable":
        library.chmod(0o722)
        assert not trusted(library)
        assert stat.S_IMODE(build().stat().st_mode) == 0o700
    else:
        cache.chmod(0o755)
        with pytest.raises(BuildError, match=r"mode 755, others may enter; chmod 700"):
            build()


def test_a_file_of_another_user_is_not_trusted(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = build()
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert not trusted(library)
    with pytest.raises(BuildError, match="is not a directory of user 4242"):
        cache_dir()


def test_a_library_of_another_abi_is_refused(cache: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.c"
    other.write_text(SOURCE.read_text().replace(f"TS_ABI {ABI}u", "TS_ABI 99u"))
    library = build()
    stale = build(Unit(other))
    assert stale != library
    planted = stale.read_bytes()
    library.write_bytes(planted)
    library.with_suffix(".sha256").write_text(hashlib.sha256(planted).hexdigest())
    with pytest.raises(BuildError, match=r"layout numbers \[99, .*remove it"):
        load(library)


def test_something_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "proxy.so"
    path.write_bytes(b"not a library")
    with pytest.raises(BuildError, match="cannot be loaded"):
        load(path)


def test_no_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BuildError, match=r"tried cc, gcc, clang.*apt-get install gcc libc6-dev"):
        find_compiler()


def test_cc_is_used_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -pipe")
    assert find_compiler() == ("cc", "-pipe")
    assert compiler_version(("cc", "-pipe")) != compiler_version(("cc",))


def test_a_source_that_does_not_compile_says_why(cache: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.c"
    bad.write_text("#include <no/such/header.h>\n")
    with pytest.raises(BuildError, match=r"(?s)no/such/header.*apt-get install libc6-dev"):
        build(Unit(bad))
    assert not list(cache.glob("build-*"))


def test_every_part_changes_the_key() -> None:
    base = (b"source", "x86_64", "gcc 12", "glibc-2.36")
    keys = {cache_key(*base)}
    keys.add(cache_key(b"source2", *base[1:]))
    keys |= {
        cache_key(base[0], *[part + "2" if i == j else part for j, part in enumerate(base[1:])])
        for i in range(3)
    }
    assert len(keys) == 5
    assert cache_key(b"ab", "c", "", "") != cache_key(b"a", "bc", "", "")
