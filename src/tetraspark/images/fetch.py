"""Fetching: which files, from where, and what came of each."""

import difflib
import fcntl
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.images.cache import Cache
from tetraspark.images.download import Download
from tetraspark.images.manifest import Archive, Manifest, Wheel
from tetraspark.images.mirror import mirrored
from tetraspark.images.tree import file_sha256
from tetraspark.images.web import web_client

Row = Archive | Wheel
State = Literal["absent", "present", "damaged", "downloaded", "copied"]
Arrived = Callable[[Row, int], None]


@dataclass(frozen=True)
class Fetched:
    """What is known of one file: `state` says whether it was there, and where it came from."""

    component: str
    file: str
    url: str
    sha256: str
    size: int | None
    licence: str
    state: State

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for `--json`."""
        return asdict(self)


def chosen(manifest: Manifest, names: Iterable[str]) -> tuple[Row, ...]:
    """Return the rows of some components (`sglang-kernel-0.4.7`, or `sglang-kernel` for each of
    its versions). Raises UsageError naming every unknown one.
    """
    known = _by_name(manifest)
    asked = list(dict.fromkeys(names))
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise UsageError(*(_unknown(name, list(known), manifest) for name in unknown))
    return tuple(dict.fromkeys(row for name in asked for row in known[name]))


def rows_of(manifest: Manifest, recipe: str | None, names: Iterable[str]) -> tuple[Row, ...]:
    """Return the rows of some components, or all; with a recipe, those in it.

    Raises UsageError for a recipe without any row, and for components that are unknown or none
    of the recipe's.
    """
    found, names = manifest if recipe is None else manifest.of(recipe), list(names)
    if recipe is not None and not found.base and not found.downloads:
        held = {one for row in (*manifest.base, *manifest.downloads) for one in row.recipes}
        wanted = f"a recipe of the sources manifest: {', '.join(sorted(held)) or 'it is empty'}"
        fix = f"{manifest.fetch_command} --list"
        raise UsageError(Problem("--recipe", f"no row of recipe {recipe!r}", wanted, fix))
    rows = chosen(manifest, names) if names else found.downloads
    inside = _by_name(found)
    others = [name for name in names if name not in inside]
    if others:
        wanted = f"components of recipe {recipe}"
        fix = f"{manifest.fetch_command} {' '.join(others)}"
        raise UsageError(Problem("--recipe", f"{', '.join(others)}, not in it", wanted, fix))
    return tuple(row for row in rows if recipe is None or recipe in row.recipes)


def _by_name(manifest: Manifest) -> dict[str, list[Row]]:
    known: dict[str, list[Row]] = {}
    for row in manifest.downloads:
        for name in {row.component, row.name if isinstance(row, Wheel) else row.component}:
            known.setdefault(name, []).append(row)
    return known


def _unknown(name: str, known: list[str], manifest: Manifest) -> Problem:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    fix = f"did you mean {near[0]}?" if near else f"{manifest.fetch_command} --list"
    return Problem("COMPONENT", repr(name), "a component of the sources manifest", fix)


@dataclass(frozen=True)
class Fetch:
    """Brings files into the cache; `mirror` and `local` replace where they come from.

    `local` is a file, or a folder with files of the same names; nothing is downloaded then.
    """

    cache: Cache
    mirror: str | None = None
    local: Path | None = None

    def run(
        self, rows: Iterable[Row], arrived: Arrived, waiting: Callable[[], None]
    ) -> Iterator[Fetched]:
        """Fetch each file, yielding what came of it. Raises RunError at the first that is wrong.

        What is in the cache is hashed again; what is damaged there is replaced. Another fetch
        into the same cache is waited for, and `waiting` told so.
        """
        rows = list(rows)
        urls = [mirrored(row.url, None if self.local else self.mirror) for row in rows]
        with _locked(self.cache, waiting), web_client() as client:
            for row, url in zip(rows, urls, strict=True):
                state = look(self.cache, row).state
                if state != "present":
                    state = self._bring(client, row, url, arrived)
                arrived(row, self.cache.path(row.sha256).stat().st_size)
                yield describe(row, state)

    def _bring(
        self, client: httpx.Client, row: Row, url: str, arrived: Arrived
    ) -> Literal["downloaded", "copied"]:
        with self.cache.writing():
            if self.local is not None:
                _copy(_local_file(self.local, row), row, self.cache)
                return "copied"
            Download(client, row, url, self.cache, lambda have: arrived(row, have)).run()
        return "downloaded"


def look(cache: Cache, row: Row) -> Fetched:
    """Say whether a file is in the cache, hashing it."""
    if not cache.has(row.sha256):
        return describe(row, "absent")
    return describe(row, "damaged" if cache.damaged(row.sha256) else "present")


def describe(row: Row, state: State) -> Fetched:
    """Return a row and its state as one value."""
    return Fetched(row.component, row.file, row.url, row.sha256, row.size, row.licence, state)


def verify(cache: Cache, manifest: Manifest) -> list[Problem]:
    """Hash everything in the cache again; return a problem for each file that was changed."""
    known = {row.sha256: row for row in manifest.downloads}
    problems = []
    for path in cache.files():
        row = known.get(path.name)
        fix = f"{manifest.fetch_command} {row.component}" if row else f"rm {path}"
        if not path.is_file():
            problems.append(Problem(str(path), "not a regular file", "one", f"rm -r {path}"))
        elif seen := cache.damaged(path.name):
            what = f" ({row.component}, {row.file})" if row else ""
            wanted = f"sha256 {path.name}, its name{what}"
            problems.append(Problem(str(path), f"sha256 {seen}", wanted, fix))
    return problems


def _local_file(local: Path, row: Row) -> Path:
    path = local / row.file if local.is_dir() else local
    if not path.is_file():
        seen = "not a regular file" if path.exists() else "no such file"
        fix = f"download {row.url} elsewhere and put it there"
        raise RunError(Problem(str(path), seen, row.component, fix))
    return path


def _copy(path: Path, row: Row, cache: Cache) -> None:
    part = cache.folder / f"{row.sha256}.part"
    try:
        shutil.copyfile(path, part)
    except OSError:
        if part.is_file():
            part.unlink()
        raise
    seen = file_sha256(part)
    if seen != row.sha256:
        part.unlink()
        wanted = f"sha256 {row.sha256}, that of {row.component}"
        fix = f"download it again: {row.url}"
        raise RunError(Problem(str(path), f"sha256 {seen}", wanted, fix))
    cache.keep(part, row.sha256)


@contextmanager
def _locked(cache: Cache, waiting: Callable[[], None]) -> Iterator[None]:
    with cache.writing():
        cache.folder.mkdir(parents=True, exist_ok=True)
        file = (cache.folder / "lock").open("w")
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
