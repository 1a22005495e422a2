"""scripts/pin_release.py: from a lock file to the rows of the manifest."""

import hashlib
import io
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from scripts.pin_release import best_wheel, tags
from tests.images.web import Page, Web
from tests.serving import ROOT

RANKS = {tag: rank for rank, tag in reversed(list(enumerate(tags())))}


def best(*files: str) -> str:
    package = {"name": "a", "version": "1", "wheels": [{"url": f"https://x/{f}"} for f in files]}
    return str(best_wheel(package, RANKS)["url"]).rsplit("/", 1)[-1]


def test_the_wheel_that_pip_would_take_there_is_taken() -> None:
    plain = "a-1-py3-none-any.whl"
    native = "a-1-cp312-cp312-manylinux2014_aarch64.manylinux_2_17_aarch64.whl"
    newer = "a-1-cp312-cp312-manylinux_2_28_aarch64.whl"
    stable = "a-1-cp39-abi3-manylinux_2_34_aarch64.whl"
    assert best(plain, native) == native
    assert best(native, newer, stable, plain) == newer
    assert best(plain, stable) == stable
    assert best("a-1-py39-none-any.whl", "a-1-py312-none-any.whl") == "a-1-py312-none-any.whl"


def wheel(metadata: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a/big.so", bytes(200_000))
        archive.writestr("a-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: a\n{metadata}")
    return made.getvalue()


STATED = {
    "License-Expression: MIT\nLicense: a whole text\n": "MIT",
    "License: BSD\nClassifier: License :: OSI Approved :: BSD License\n": "BSD License",
    "License: Apache 2.0\n": "Apache 2.0",
    f"License: {'long ' * 50}\n": "see the wheel's own licence files",
    "": "not stated in its metadata",
}


def test_a_lock_becomes_rows_with_licences_read_out_of_the_wheels(
    tmp_path: Path, server: Web
) -> None:
    lock = ""
    bodies = [wheel(metadata) for metadata in STATED]
    for number, body in enumerate(bodies):
        path = f"/files/{number}/a-1-py3-none-any.whl"
        server.pages[path] = Page(body)
        sha256 = hashlib.sha256(body).hexdigest()
        lock += f"""
[[packages]]
name = "a{number}"
version = "1"
wheels = [{{ url = "{server.url}{path}", size = {len(body)}, hashes = {{ sha256 = "{sha256}" }} }}]
"""
    (tmp_path / "pylock.toml").write_text(lock)
    script = [sys.executable, str(ROOT / "scripts" / "pin_release.py"), "pylock.toml", "out.toml"]
    subprocess.run(script, cwd=tmp_path, check=True)
    rows = tomllib.loads((tmp_path / "out.toml").read_text())["wheel"]
    assert [row["licence"] for row in rows] == list(STATED.values())
    assert [row["sha256"] for row in rows] == [hashlib.sha256(one).hexdigest() for one in bodies]
    assert [row["size"] for row in rows] == [len(one) for one in bodies]
    assert {tuple(row["recipes"]) for row in rows} == {("release",)}
