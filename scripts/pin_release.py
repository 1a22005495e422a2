"""Write the wheels of the release image into its manifest, from a lock file.

Usage: python3 scripts/pin_release.py PYLOCK [OUTPUT]

PYLOCK is a pylock.toml (PEP 751) as uv resolves one for the target; docs/images.md has the
command. Of each package the wheel that pip would prefer there is kept, with the URL, size and
sha256 that the index gave; its licence is read from the metadata in it.
"""

import io
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from pathlib import Path
from typing import Any

import httpx
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

OUTPUT = Path(__file__).parents[1] / "src" / "tetraspark" / "images" / "release.toml"
PYTHON = (3, 12)
MACHINE = "aarch64"
LIBC_MINORS = range(39, 16, -1)
HEADER = """\
# Every wheel of the release image, for Python 3.12 on 64-bit Arm; no other package is in its
# environment. Made by scripts/pin_release.py, see docs/images.md: do not edit.
"""


def tags() -> list[Tag]:
    """Return the tags of the target, the preferred ones first."""
    platforms = [f"manylinux_2_{minor}_{MACHINE}" for minor in LIBC_MINORS]
    platforms += [f"manylinux2014_{MACHINE}", f"linux_{MACHINE}"]
    return [
        *cpython_tags(PYTHON, platforms=platforms),
        *compatible_tags(PYTHON, "cp312", platforms=platforms),
    ]


def best_wheel(package: dict[str, Any], ranks: dict[Tag, int]) -> dict[str, Any]:
    """Return the wheel pip would take. Raises ValueError where the target can use none."""
    usable = [
        (ranks[tag], wheel["url"], wheel)
        for wheel in package.get("wheels", [])
        for tag in parse_wheel_filename(file_name(wheel["url"]))[3]
        if tag in ranks
    ]
    if not usable:
        raise ValueError(f"{package['name']} {package['version']}: no wheel for {MACHINE}")
    wheel: dict[str, Any] = min(usable, key=lambda one: one[:2])[2]
    return wheel


def file_name(url: str) -> str:
    """Return the last part of a URL."""
    return url.rsplit("/", 1)[-1]


class RemoteFile(io.RawIOBase):
    """A file behind a URL, read in pieces with range requests: a wheel's metadata is small."""

    def __init__(self, client: httpx.Client, url: str, size: int) -> None:
        self.client, self.url, self.size, self.at = client, url, size, 0

    def seekable(self) -> bool:
        """Say that `seek` works."""
        return True

    def readable(self) -> bool:
        """Say that reading works."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched yet."""
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def readinto(self, buffer: Any) -> int:
        """Fetch as much as the buffer holds, or what is left. Raises httpx.HTTPError."""
        end = min(self.at + len(buffer), self.size)
        if end <= self.at:
            return 0
        wanted = {"Range": f"bytes={self.at}-{end - 1}"}
        answer = self.client.get(self.url, headers=wanted).raise_for_status()
        if answer.status_code != httpx.codes.PARTIAL_CONTENT:
            raise httpx.HTTPError(f"{self.url}: the server does not answer range requests")
        buffer[: len(answer.content)] = answer.content
        self.at += len(answer.content)
        return len(answer.content)


def licence_of(client: httpx.Client, wheel: dict[str, Any]) -> str:
    """Return what a wheel's metadata says of its licence, in one line."""
    remote = io.BufferedReader(RemoteFile(client, wheel["url"], wheel["size"]), 1 << 16)
    with zipfile.ZipFile(remote) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    classifiers = [
        value.rsplit(" :: ", 1)[-1]
        for value in metadata.get_all("Classifier", [])
        if value.startswith("License ::")
    ]
    expression, text = metadata.get("License-Expression"), str(metadata.get("License") or "")
    for stated in (expression, ", ".join(classifiers), text.strip()):
        if stated and len(stated) <= 100 and stated.isprintable():
            return stated.replace('"', "'")
    return "see the wheel's own licence files" if text else "not stated in its metadata"


def rows(lock: dict[str, Any]) -> Iterator[str]:
    """Yield one TOML table a package, in the order of the lock."""
    ranks = {tag: rank for rank, tag in reversed(list(enumerate(tags())))}
    wheels = [best_wheel(package, ranks) for package in lock["packages"]]
    with httpx.Client(timeout=60, follow_redirects=True) as client, ThreadPoolExecutor(4) as pool:
        licences = list(pool.map(lambda wheel: licence_of(client, wheel), wheels))
    for package, wheel, licence in zip(lock["packages"], wheels, licences, strict=True):
        yield (
            f'\n[[wheel]]\nname = "{package["name"]}"\nversion = "{package["version"]}"\n'
            f'url = "{wheel["url"]}"\nsha256 = "{wheel["hashes"]["sha256"]}"\n'
            f'size = {wheel["size"]}\nlicence = "{licence}"\nrecipes = ["release"]\n'
        )


def main(argv: list[str]) -> int:
    """Write the manifest; return the process exit code."""
    lock = tomllib.loads(Path(argv[0]).read_text(encoding="utf-8"))
    output = Path(argv[1]) if len(argv) > 1 else OUTPUT
    output.write_text(HEADER + "".join(rows(lock)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
