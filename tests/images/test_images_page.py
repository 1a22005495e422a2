"""docs/images.md: its commands run, its tables and examples are true."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.images.conftest import Sources
from tests.images.test_package import git
from tests.images.web import Page, Web
from tests.serving import COMMAND, ROOT
from tetraspark.images.assemble import build_context
from tetraspark.images.dockerfile import render
from tetraspark.images.manifest import load_manifest
from tetraspark.images.recipe import RECIPES
from tetraspark.site.engines import RELEASE
from tetraspark.site.load import load_site

PAGE = (ROOT / "docs" / "images.md").read_text()
SHIPPED = load_manifest()
COMMANDS = [
    line for block in re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE) for line in block.splitlines()
]


@pytest.fixture
def stand_in(tmp_path: Path, server: Web) -> dict[str, str]:
    """The shipped canary rows with other, small bodies: on the server and in ~/Downloads."""
    downloads = tmp_path / "Downloads"
    downloads.mkdir()
    text = (ROOT / "src/tetraspark/images/sources.toml").read_text()
    for row in SHIPPED.of("canary").downloads:
        body = row.component.encode()
        server.serve(row.url, Page(body))
        (downloads / row.file).write_bytes(body)
        text = text.replace(row.sha256, hashlib.sha256(body).hexdigest())
        text = text.replace(f"size = {row.size}\n", f"size = {len(body)}\n")
    (tmp_path / "sources.toml").write_text(text)
    return {
        "HOME": str(tmp_path),
        "TETRASPARK_MANIFEST": str(tmp_path / "sources.toml"),
        "TETRASPARK_MIRROR": server.url,
        "PATH": f"{COMMAND.parent}:/usr/bin:/bin",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_does_what_it_says(
    stand_in: dict[str, str], server: Web, line: str
) -> None:
    text = line.replace("http://mirror.lan:8080", server.url)
    done = subprocess.run(
        ["bash", "-euc", text], env=stand_in, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if "--list" in line or "--verify" in line:
        assert "absent" in done.stdout or "0 files in" in done.stdout
    else:
        count = 1 if "sglang-kernel" in line else 3
        assert done.stdout.count("copied" if "--from" in line else "downloaded") == count


def test_the_page_has_its_commands() -> None:
    assert len(COMMANDS) == 6


def test_the_table_has_every_recipe_with_its_engine() -> None:
    rows = dict(re.findall(r"(?m)^\| `([\w-]+)` \| ([^|]+) \|", PAGE))
    assert list(rows) == list(RECIPES)
    (archive,) = SHIPPED.of("canary").source
    assert archive.commit.startswith("f80c91a4b97e") and "f80c91a4b97e" in rows["canary"]
    assert RELEASE in rows["release"]
    release = SHIPPED.of("release").wheel
    gigabytes = sum(row.size or 0 for row in release) / 1e9
    assert f"{len(release)} wheels ({gigabytes:.1f} GB)" in PAGE
    for row in SHIPPED.of("canary").wheel:
        assert f"{row.name} {row.version}" in PAGE


def test_what_the_page_says_of_the_base_is_what_the_build_asks_for() -> None:
    text = render("release", SHIPPED.base[0].pinned, None)
    assert "Python 3.12" in PAGE and "--python=3.12" in text
    assert "glibc 2.34" in PAGE and "--libc=2.34" in text


def test_the_dockerfile_of_the_page_is_accepted(sources: Sources, tmp_path: Path) -> None:
    sources.fill()
    (image,) = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE)
    (dockerfile,) = re.findall(r"(?ms)^```dockerfile\n(.*?)^```", PAGE)
    folder = tmp_path / "mine"
    (folder / "image" / "patches").mkdir(parents=True)
    (folder / "image" / "patches" / "one").write_text("")
    (folder / "image" / "Dockerfile").write_text(dockerfile)
    text = (ROOT / "sites" / "four-sparks-switch.toml").read_text()
    text = re.sub(r"(?ms)^\[image\].*?(?=^\[)", image + "\n", text)
    (folder / "site.toml").write_text(text + 'SGLANG_RUST_BUILD_MODE = "never"\n')
    git(folder, "init", "-q")
    git(folder, "add", ".")
    loaded = load_site(folder / "site.toml")
    made = build_context(loaded, sources.cache, manifest=sources.manifest, allow_dirty=True)
    assert made.dockerfile_text == dockerfile
    assert {"patches/one", "files/wheels/kernel_one-1.2-py3-none-any.whl"} <= {
        one.path for one in made.files
    }
    assert [name for name, _ in made.build_args] == ["BASE_IMAGE", "JOBS", "PIP_INDEX_URL"]
