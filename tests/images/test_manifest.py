"""The sources manifest: what ships is whole, and a bad row is refused at its line."""

import hashlib
import re
from pathlib import Path

import pytest

from tests.images.conftest import BODIES, COMMIT, ONE, TEXT, TWO, Sources
from tetraspark.errors import UsageError
from tetraspark.images.manifest import load_manifest

SHIPPED = load_manifest()


def test_the_shipped_manifest_pins_what_the_recipes_are_made_of() -> None:
    (base,) = SHIPPED.base
    assert base.pinned == (
        "lmsysorg/sglang:dev-dsv41@sha256:"
        "3dbc313030a6ef2c5d7de8ecf48e9aece722694a82182cb618cc82b588816349"
    )
    canary = {row.component for row in SHIPPED.of("canary").downloads}
    assert canary == {"sglang-dsv41", "sglang-kernel-0.4.7", "sgl-deep-gemm-0.2.0"}
    assert canary == {row.component for row in SHIPPED.of("canary-roce").downloads}
    assert SHIPPED.of("base").downloads == ()
    (archive,) = SHIPPED.of("canary").source
    assert archive.commit == "f80c91a4b97e52e17fbcff088aa6b47b6270f6b9"
    assert archive.sha256.startswith("9968fcff7fa8218b") and archive.size is None


def test_the_release_has_the_pins_of_its_engine_and_one_version_of_each_project() -> None:
    release = {row.name: row for row in SHIPPED.of("release").wheel}
    assert len(release) == len(SHIPPED.of("release").wheel) > 200
    pins = {
        "sglang": "0.5.23", "flashinfer-python": "0.7.2", "sgl-deep-gemm": "0.2.3.post2",
        "sgl-flash-mla": "1.0.0", "sglang-kernel": "0.4.10", "torch": "2.14.1",
        "transformers": "5.19.0",
    }  # fmt: skip
    assert {name: release[name].version for name in pins} == pins
    for row in release.values():
        assert re.search(r"-(any|[\w.]*aarch64)\.whl$", row.file), row.file
        assert re.search(r"-(py[23.py]+|cp312|cp3\d+-abi3|py3\d*|cp3)-", row.file), row.file
        assert row.size and row.licence


ONE_HASH, TWO_HASH = (hashlib.sha256(BODIES[url]).hexdigest() for url in (ONE, TWO))
BROKEN = [
    (f'commit = "{COMMIT}"', 'commit = "0123abc"', "commit", "40 hex digits"),
    (f"/{COMMIT}.tar.gz", "/main.tar.gz", "[[source]]", "a branch or tag moves"),
    ("https://code.example", "http://code.example", "url", "https://HOST"),
    ("https://code.example", "https://bob:hush@code.example", "url", "without credentials"),
    ('version = "1.2"', 'version = "1.3"', "[[wheel]]", "a wheel of kernel-one 1.3"),
    ('name = "kernel-two"', 'name = "kernel-too"', '[[wheel]]\nname = "kernel-too"', "kernel-too"),
    ("size = 9000", "sise = 9000", "sise", "did you mean `size`?"),
    ("size = 9000", 'size = "9000"', "size", "write it without quotes"),
    ("sha256:5", "sha512:5", "digest", "sha256:"),
    ('component = "engine"', 'component = "base"', "[[source]]", "each component, file"),
    ('"linux/arm64"', '"linux/arm"', "platform", 'did you mean "linux/arm64"?'),
    ('reference = "registry.example/base:1"\n', "", "[[base]]", "reference"),
    ('recipes = ["canary", "canary-roce"]', "recipes = []", "recipes = []", "is []"),
    ("code.example/", "code.example:99999/", "url", "host or port"),
    ("code.example/", "code.example:hush/", "url", "host or port"),
    ("code.example/", "a..b/", "url", "not a host name"),
    (f"{COMMIT}.tar.gz", f"{COMMIT}%2f..%2fx.tar.gz", "url", "letters, digits"),
    (f"{COMMIT}.tar.gz", f"{COMMIT}%0aRUN", "url", "letters, digits"),
    (f"{COMMIT}.tar.gz", f"{COMMIT} x.tar.gz", "url", "blanks"),
    ("base:1", "base:1\\nRUN x", "reference", "as `FROM` takes it"),
    ("base:1", "base:1 AS x", "reference", "as `FROM` takes it"),
    ('licence = "MIT"', 'licence = "\\u001b[31m"', "licence", "plain text"),
    ("size = 9000", "size = 9000000000000", "size", "to 1099511627776"),
    (TWO_HASH, ONE_HASH, '[[wheel]]\nname = "kernel-two"', "sha256"),
    ('licence = "MIT"\nrecipes = ["base"', 'licence = "MIT\nrecipes = ["base"', "licence", "TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "at", "words"), BROKEN)
def test_a_bad_row_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, at: str, words: str
) -> None:
    path, text = tmp_path / "sources.toml", TEXT.replace(old, new, 1)
    assert text != TEXT
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    (problem,) = caught.value.problems
    line = text[: text.index(at)].count("\n") + 1
    assert problem.where.partition(":")[0] == str(path)
    assert problem.where.split(":")[1] == str(line), problem
    assert words in str(problem) and "hush" not in str(problem)


def test_of_leaves_the_rows_of_one_recipe(sources: Sources) -> None:
    assert [row.component for row in sources.manifest.of("canary").downloads] == [
        "engine", "kernel-one-1.2", "kernel-two-0.3",
    ]  # fmt: skip
    assert sources.manifest.of("release").downloads == ()
    assert len(sources.manifest.of("release").base) == 1


def test_the_same_manifest_or_row_twice_is_refused(sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        load_manifest(sources.path, tmp_path / "." / "sources.toml")
    (tmp_path / "other.toml").write_text(TEXT)
    with pytest.raises(UsageError, match=f"component 'engine' again .see {sources.path}:"):
        load_manifest(sources.path, tmp_path / "other.toml")


def test_a_fix_names_the_manifest_it_is_for(sources: Sources) -> None:
    assert SHIPPED.fetch_command == "tetraspark fetch"
    assert sources.manifest.of("canary").fetch_command.endswith(f" --manifest {sources.path}")
