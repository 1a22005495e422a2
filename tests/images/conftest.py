"""What the tests of images share: a server, a small manifest and the cache beside it."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.images.web import Page, Web
from tetraspark.images.cache import Cache
from tetraspark.images.manifest import Archive, Manifest, Wheel, load_manifest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ARCHIVE = f"https://code.example/engine/{COMMIT}.tar.gz"
ONE = "https://files.example/ab/cd/kernel_one-1.2-py3-none-any.whl"
TWO = "https://files.example/ab/ef/kernel_two-0.3-py3-none-any.whl"
BODIES = {
    ARCHIVE: random.Random(1).randbytes(50_000),
    ONE: random.Random(2).randbytes(9_000),
    TWO: b"two",
}


def row(kind: str, url: str, keys: str, size: bool = True) -> str:
    body = BODIES[url]
    told = f"size = {len(body)}\n" if size else ""
    return (
        f'\n[[{kind}]]\n{keys}url = "{url}"\nsha256 = "{hashlib.sha256(body).hexdigest()}"\n{told}'
        'licence = "MIT"\nrecipes = ["canary", "canary-roce"]\n'
    )


TEXT = (
    '[[base]]\ncomponent = "base"\nreference = "registry.example/base:1"\n'
    f'digest = "sha256:{"5" * 64}"\nplatform = "linux/arm64"\nlicence = "MIT"\n'
    'recipes = ["base", "canary", "canary-roce", "release"]\n'
    + row("source", ARCHIVE, f'component = "engine"\ncommit = "{COMMIT}"\n', size=False)
    + row("wheel", ONE, 'name = "kernel-one"\nversion = "1.2"\n')
    + row("wheel", TWO, 'name = "kernel-two"\nversion = "0.3"\n')
)


@dataclass(frozen=True)
class Sources:
    """A manifest as file and value, the cache to fetch into, and the server that has the files."""

    path: Path
    manifest: Manifest
    cache: Cache
    web: Web
    pages: dict[str, Page]

    def row(self, component: str) -> Archive | Wheel:
        return next(row for row in self.manifest.downloads if row.component == component)

    def fill(self) -> None:
        """Put every file into the cache, without the server."""
        for row in self.manifest.downloads:
            assert self.cache.add(BODIES[row.url]) == row.sha256


@pytest.fixture(scope="session")
def server() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


@pytest.fixture
def sources(tmp_path: Path, server: Web, monkeypatch: pytest.MonkeyPatch) -> Sources:
    """A fresh manifest and cache; the whole machine's cache and settings are out of reach."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.delenv("TETRASPARK_MIRROR", raising=False)
    path = tmp_path / "sources.toml"
    path.write_text(TEXT)
    server.seen.clear()
    pages = {url: server.serve(url, Page(body)) for url, body in BODIES.items()}
    cache = Cache(tmp_path / "cache" / "tetraspark" / "sources")
    return Sources(path, load_manifest(path), cache, server, pages)
