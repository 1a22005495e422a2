"""Small stand-ins for what an image is made of, and a site of four nodes that builds from them."""

import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

from tests.fleet.nodes.base_image import PLATFORM
from tests.images.web import Page, Web
from tests.serving import COMMAND, ROOT
from tetraspark.images.cache import Cache

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ARCHIVE = f"https://code.example/engine/{COMMIT}.tar.gz"
WHEEL = "https://files.example/ab/kernel_one-1.2-py3-none-any.whl"
BASE = "tetraspark-test/base:1"
KIND = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
METADATA = "Metadata-Version: 2.1\nName: kernel-one\nVersion: 1.2\n"


def archive() -> bytes:
    """Return the engine's branch: a tree whose one module says where it came from."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in {
            "sglang/__init__.py": "",
            "sglang/srt/__init__.py": "",
            "sglang/srt/server_args.py": 'ORIGIN = "branch"\n',
        }.items():
            info = tarfile.TarInfo(f"engine-{COMMIT}/python/{name}")
            info.size, info.mode = len(text), 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def wheel() -> bytes:
    """Return a wheel of one module."""
    buffer = io.BytesIO()
    info = "kernel_one-1.2.dist-info"
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("kernel_one.py", "ANSWER = 42\n")
        file.writestr(f"{info}/METADATA", METADATA)
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


BODIES = {ARCHIVE: archive(), WHEEL: wheel()}


def manifest(digest: str, platform: str = PLATFORM) -> str:
    """Return a sources manifest for the recipe canary."""
    common = 'licence = "MIT"\nrecipes = ["canary"]\n'

    def file(url: str) -> str:
        return f'url = "{url}"\nsha256 = "{hashlib.sha256(BODIES[url]).hexdigest()}"\n'

    return (
        f'[[base]]\ncomponent = "base"\nreference = "{BASE}"\ndigest = "{digest}"\n'
        f'platform = "{platform}"\n{common}\n'
        f'[[source]]\ncomponent = "engine"\ncommit = "{COMMIT}"\n{file(ARCHIVE)}{common}\n'
        f'[[wheel]]\nname = "kernel-one"\nversion = "1.2"\n{file(WHEEL)}{common}'
    )


def site(name: str) -> str:
    """Return the example of a ring of four, with the fleet's machines and the recipe canary."""
    text = (ROOT / "sites" / "four-sparks-ring.toml").read_text()
    for number in range(1, 5):
        text = text.replace(f"192.168.1.1{number}", f"10.99.0.{number}")
    swaps = {
        'name = "four-sparks-ring"': f'name = "{name}"',
        'user = "alice"': 'user = "root"',
        'recipe = "canary-roce"': 'recipe = "canary"',
        'tag = "tetraspark:canary-roce"': f'tag = "tetraspark:{name}"',
    }
    for old, new in swaps.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class Workshop:
    """A folder with a site, a manifest, a cache and state of its own, and the command on them."""

    def __init__(self, folder: Path, name: str, web: Web, digest: str) -> None:
        self.folder = folder
        self.site = folder / "site.toml"
        self.site.write_text(site(name))
        self.manifest = folder / "sources.toml"
        self.manifest.write_text(manifest(digest))
        self.pages = {url: web.serve(url, Page(body)) for url, body in BODIES.items()}
        self.web = web

    @property
    def cache(self) -> Path:
        """The folder of fetched files."""
        return self.folder / "cache/tetraspark/sources"

    @staticmethod
    def body(url: str) -> bytes:
        """The bytes that are pinned for a URL."""
        return BODIES[url]

    @property
    def env(self) -> dict[str, str]:
        """The environment of the command: the site, and folders of its own."""
        own = {
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "TETRASPARK_STATE": str(self.folder / "state"),
            "TETRASPARK_MIRROR": self.web.url,
            "TETRASPARK_MANIFEST": str(self.manifest),
            "TETRASPARK_SITE": str(self.site),
            "NETRC": str(self.folder / "netrc"),
            "COLUMNS": "200",
        }
        return os.environ | own

    def argv(self, verb: str, *words: str) -> list[str]:
        """Return the argv of a verb; a checkout with changes may build."""
        dirty = ["--allow-dirty"] if verb == "build" and "--check-pins" not in words else []
        return [str(COMMAND), verb, *dirty, *words]

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            self.argv(verb, *words),
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    def fill(self) -> None:
        """Put every file into the cache, without a server."""
        for body in BODIES.values():
            Cache(self.cache).add(body)

    def fetch(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `tetraspark fetch`."""
        return self.run("fetch", *words)

    def build(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `tetraspark build`."""
        return self.run("build", *words)
