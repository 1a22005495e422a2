"""The build context of an image: every file with its hash, as a value; then as a folder.

A context is computed on the head, written there, copied to each node as it is, and built on each.
Nothing gets into the folder whose bytes were not hashed while they were copied.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.images.cache import Cache
from tetraspark.images.tree import CHUNK, sha256_of_entries

EPOCH = 315_532_800
"""1980-01-01T00:00:00Z: the time of every file in a context, and SOURCE_DATE_EPOCH in it."""


@dataclass(frozen=True)
class ContextFile:
    """One file: its path in the context (`/`, never leaving it), where its bytes are, what they
    hash to (sha256, hex), and its permission bits (0o644 or 0o755). Raises ValueError for a path
    that leaves.
    """

    path: str
    source: Path
    sha256: str
    mode: int = 0o644

    def __post_init__(self) -> None:
        if self.path.startswith("/") or ".." in self.path.split("/"):
            raise ValueError(f"{self.path!r} leaves the context")

    @classmethod
    def made(cls, path: str, content: bytes, cache: Cache, mode: int = 0o644) -> Self:
        """Return a file of the context whose bytes are made here; they go through the cache."""
        sha256 = cache.add(content)
        return cls(path, cache.path(sha256), sha256, mode)


@dataclass(frozen=True)
class BuildContext:
    """All that a build needs, and what the image must say of itself afterwards.

    `base` is a reference with its digest and `platform` what its image must be of; `dockerfile`
    is the path of the Dockerfile in the context, `dockerfile_text` what is in it. `network` is
    what to give `docker build --network`. `labels` go to `docker build --label` and are what
    `docker image inspect` must show.
    """

    recipe: str
    tag: str
    base: str
    platform: str
    dockerfile: str
    dockerfile_text: str
    files: tuple[ContextFile, ...]
    build_args: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    network: Literal["none", "default"]

    def __post_init__(self) -> None:
        paths = [one.path for one in self.files]
        twice = {path for path in paths if paths.count(path) > 1}
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))} twice in a context")

    @property
    def tree_sha256(self) -> str:
        """The hash that `tree.tree_sha256` gives for the written folder, on any machine."""
        return tree_of(self.files)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values, for plans; a context holds no secrets."""
        return {**asdict(self), "tree_sha256": self.tree_sha256}


def tree_of(files: Iterable[ContextFile]) -> str:
    """Return the tree hash (hex) that a folder with these files has."""
    return sha256_of_entries((one.path, one.mode, one.sha256) for one in files)


def write_context(context: BuildContext, folder: Path) -> str:
    """Write a context to a folder that is absent or empty; return its tree hash (hex).

    The folder appears complete or not at all. Raises RunError naming every file whose bytes are
    not those of its hash, and UsageError for a folder that holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fix = "name another folder, or empty this one"
        raise UsageError(Problem(str(folder), "something in it", "an empty folder", fix))
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        problems = [problem for one in context.files for problem in _copy(one, part)]
        if problems:
            raise RunError(*problems)
        part.chmod(0o755)
        part.replace(folder)
    except BaseException:
        shutil.rmtree(part)
        raise
    return context.tree_sha256


def _copy(one: ContextFile, folder: Path) -> list[Problem]:
    """Copy one file, hashing what is written; return what is wrong with it."""
    target = folder / one.path
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with one.source.open("rb") as source, target.open("xb") as copy:
            for block in iter(lambda: source.read(CHUNK), b""):
                digest.update(block)
                copy.write(block)
    except OSError as error:
        reason = error.strerror or str(error)
        return [Problem(str(one.source), reason, f"the bytes of {one.path}", "tetraspark fetch")]
    target.chmod(one.mode)
    os.utime(target, (EPOCH, EPOCH))
    if digest.hexdigest() == one.sha256:
        return []
    seen = f"sha256 {digest.hexdigest()}"
    wanted = f"{one.sha256}, the hash of {one.path}"
    return [Problem(str(one.source), seen, wanted, "tetraspark fetch --verify, then fetch again")]
