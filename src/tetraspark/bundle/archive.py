"""The file of a bundle: one .tar.gz with an index, the same bytes for the same contents."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tetraspark import __version__
from tetraspark.bundle.redaction import Redactor
from tetraspark.bundle.source import Missing, Source
from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, UsageError

SCHEMA = 1
INDEX = "index.json"


@dataclass(frozen=True)
class Listed:
    """A file of the bundle as its index lists it; the hash is of the text without secrets."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Index:
    """What is in a bundle, what is not and why, and what its texts show."""

    site: str
    made_at: str
    files: tuple[Listed, ...]
    missing: tuple[Missing, ...]
    findings: tuple[Check, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for index.json and `--json`."""
        return {
            "schema": SCHEMA,
            "tetraspark": __version__,
            "site": self.site,
            "made_at": self.made_at,
            "findings": [check.as_dict() for check in self.findings],
            "missing": [one.as_dict() for one in self.missing],
            "files": [asdict(one) for one in self.files],
        }


def pack(
    site: str,
    sources: Iterable[Source],
    missing: Iterable[Missing],
    findings: Sequence[Check],
    redactor: Redactor,
    made_at: float,
) -> tuple[bytes, Index]:
    """Return the archive and its index; every text goes through the redactor, the index too.

    A key that the redactor does not know is missing with the rest.
    Files are in the order of their names; `made_at` (Unix seconds) is the time of all of them.
    """
    lacking = [*missing, *([redactor.unread] if redactor.unread is not None else [])]
    texts = {source.name: redactor.clean(source.text) for source in sources}
    contents = {name: texts[name].encode(errors="replace") for name in sorted(texts)}
    index = Index(
        site=site,
        made_at=datetime.fromtimestamp(int(made_at), UTC).isoformat(),
        files=tuple(
            Listed(name, len(data), hashlib.sha256(data).hexdigest())
            for name, data in contents.items()
        ),
        missing=tuple(
            Missing(one.name, redactor.clean(one.why))
            for one in sorted(lacking, key=lambda one: (one.name, one.why))
        ),
        findings=tuple(_clean(check, redactor) for check in findings),
    )
    listing = json.dumps(index.as_dict(), indent=1) + "\n"
    members = {INDEX: listing.encode(), **contents}
    return _tar(f"tetraspark-support-{site}", members, int(made_at)), index


def write_new(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 that was not there. Raises UsageError when it was."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        fix = "name another file: --out FILE"
        raise UsageError(Problem(str(path), "the file exists", "a new file", fix)) from None
    except OSError as error:
        seen = f"cannot be written: {error.strerror}"
        fix = "name another place: --out FILE"
        raise UsageError(Problem(str(path), seen, "a writable folder", fix)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except BaseException:
        path.unlink()
        raise


def _clean(check: Check, redactor: Redactor) -> Check:
    observed, fix = redactor.clean(check.observed), redactor.clean(check.fix)
    return Check(check.id, check.node, check.verdict, observed, check.wanted, fix)


def _tar(folder: str, members: dict[str, bytes], at: int) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=at) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, data in members.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), at, 0o600
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
