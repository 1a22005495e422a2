"""Fetching: which files, from where, and what came of each."""

import difflib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from netrc import NetrcParseError
from pathlib import Path
from typing import Any, Literal

import httpx

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.images.cache import Cache
from tetraspark.images.download import Download
from tetraspark.images.manifest import Archive, Manifest, Wheel
from tetraspark.images.mirror import mirrored
from tetraspark.images.tree import file_sha256

TIMEOUT = httpx.Timeout(60, connect=20)
"""Seconds: between two pieces of a body, and for a connection."""
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
    known: dict[str, list[Row]] = {}
    for row in manifest.downloads:
        for name in {row.component, row.name if isinstance(row, Wheel) else row.component}:
            known.setdefault(name, []).append(row)
    asked = list(dict.fromkeys(names))
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise UsageError(*(_unknown(name, list(known)) for name in unknown))
    return tuple(dict.fromkeys(row for name in asked for row in known[name]))


def _unknown(name: str, known: list[str]) -> Problem:
    near = difflib.get_close_matches(name, known, 1)
    fix = f"did you mean {near[0]}?" if near else "tetraspark fetch --list"
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
        urls = [mirrored(row.url, self.mirror) for row in rows]
        with _locked(self.cache, waiting), _client() as client:
            for row, url in zip(rows, urls, strict=True):
                state = look(self.cache, row).state
                if state != "present":
                    state = self._bring(client, row, url, arrived)
                arrived(row, self.cache.path(row.sha256).stat().st_size)
                yield describe(row, state)

    def _bring(
        self, client: httpx.Client, row: Row, url: str, arrived: Arrived
    ) -> Literal["downloaded", "copied"]:
        try:
            if self.local is not None:
                _copy(_local_file(self.local, row), row, self.cache)
                return "copied"
            Download(client, row, url, self.cache, lambda have: arrived(row, have)).run()
        except OSError as error:
            reason = error.strerror or str(error)
            fix = f"df -h {self.cache.folder}"
            problem = Problem(str(error.filename or self.cache.folder), reason, row.file, fix)
            raise RunError(problem) from error
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
        seen = cache.damaged(path.name)
        if seen:
            row = known.get(path.name)
            what = f" ({row.component}, {row.file})" if row else ""
            fix = f"tetraspark fetch {row.component}" if row else f"rm {path}"
            wanted = f"sha256 {path.name}, its name{what}"
            problems.append(Problem(str(path), f"sha256 {seen}", wanted, fix))
    return problems


def _local_file(local: Path, row: Row) -> Path:
    path = local / row.file if local.is_dir() else local
    if not path.is_file():
        fix = f"download {row.url} elsewhere and put it there"
        raise RunError(Problem(str(path), "no such file", row.component, fix))
    return path


def _copy(path: Path, row: Row, cache: Cache) -> None:
    part = cache.folder / f"{row.sha256}.part"
    shutil.copyfile(path, part)
    seen = file_sha256(part)
    if seen != row.sha256:
        part.unlink()
        wanted = f"sha256 {row.sha256}, that of {row.component}"
        fix = f"download it again: {row.url}"
        raise RunError(Problem(str(path), f"sha256 {seen}", wanted, fix))
    cache.keep(part, row.sha256)


def _client() -> httpx.Client:
    """Return the client; passwords of a mirror come from ~/.netrc, never from a URL.

    Raises UsageError for a netrc file or proxy settings that cannot be used; neither is shown,
    as both may hold passwords.
    """
    path = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        auth = httpx.NetRCAuth(str(path)) if path.is_file() else None
    except NetrcParseError as error:
        where, fix = f"{path}:{error.lineno}", "correct the line"
        raise UsageError(Problem(where, "cannot be read", "a netrc file", fix)) from None
    try:
        return httpx.Client(timeout=TIMEOUT, follow_redirects=True, auth=auth)
    except (ValueError, httpx.InvalidURL):
        seen, fix = "a proxy that is no URL", "env | grep -i _proxy"
        wanted = "HTTP_PROXY and HTTPS_PROXY as http://HOST:PORT"
        raise UsageError(Problem("environment", seen, wanted, fix)) from None


@contextmanager
def _locked(cache: Cache, waiting: Callable[[], None]) -> Iterator[None]:
    cache.folder.mkdir(parents=True, exist_ok=True)
    with (cache.folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
