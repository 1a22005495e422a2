"""A file that a person names: its bytes, and its text with every byte-level oddity named."""

import hashlib
import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from tetraspark.errors import Problem, UsageError

LARGEST_FILE = 1024 * 1024
"""Bytes: no file that people write for tetraspark is larger."""
LARGEST_DATA = 64 * 1024 * 1024
"""Bytes: no report, plan or inventory is larger, and no text that a suite measures with."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Source:
    """The text of one file, with LF line ends and no byte order mark.

    `sha256` is the hex digest of the bytes as they were read, before any conversion.
    """

    path: Path
    text: str
    sha256: str
    warnings: tuple[Problem, ...] = ()

    def where(self, line: int) -> str:
        """Return `FILE:LINE`, the form every problem uses (lines count from 1)."""
        return f"{self.path}:{line}"


def read_source(path: Path, absent: str = "check the path") -> Source:
    """Read a file; raises UsageError for a missing, unreadable or badly encoded one.

    `absent` is the fix for a missing one.
    """
    return decode_source(path, read_bytes(path, absent))


def decode_source(path: Path, data: bytes) -> Source:
    """Turn bytes into a Source; raises UsageError for bytes no text file should hold."""
    body = data.removeprefix(_BOM)
    problem = _encoding_problem(path, body)
    if problem is not None:
        raise UsageError(problem)
    text = body.decode("utf-8")
    return Source(
        path,
        text.replace("\r\n", "\n"),
        hashlib.sha256(data).hexdigest(),
        tuple(_warnings(path, data)),
    )


def read_text(path: Path, wanted: str, fix: str, largest: int = LARGEST_DATA) -> str:
    """Return the text of a file that is to be `wanted`; `fix` is how to make one.

    Raises UsageError as `read_bytes` does, and for bytes that are not UTF-8.
    """
    try:
        return read_bytes(path, fix, wanted, largest).decode("utf-8")
    except UnicodeDecodeError as error:
        seen = f"byte {error.start} is not UTF-8"
        raise UsageError(Problem(str(path), seen, wanted, fix)) from None


def read_bytes(
    path: Path,
    absent: str = "check the path",
    wanted: str = "a readable file",
    largest: int = LARGEST_FILE,
) -> bytes:
    """Return a file's bytes.

    Raises UsageError for a missing or unreadable file, for what is no regular file (a pipe or a
    device may never end) and for more than `largest` bytes.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(_irregular(path, status.st_mode))
        check_size(path, status.st_size, largest)
        # A pipe may have come into its place since; opened so, it is not waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(largest + 1) or b""  # None where a file has nothing yet.
        # It may have grown, and some files say 0 of themselves.
        check_size(path, len(data), largest)
        return data
    except FileNotFoundError:
        raise UsageError(Problem(str(path), "no such file", wanted, absent)) from None
    except PermissionError:
        fix = f"chmod u+r {shlex.quote(str(path))}"
        raise UsageError(Problem(str(path), "permission denied", wanted, fix)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            Problem(str(path), f"cannot be read: {reason}", wanted, "check the path")
        ) from None


def check_size(path: Path, size: int, largest: int = LARGEST_FILE) -> None:
    """Raise UsageError for a file of more than `largest` bytes."""
    if size > largest:
        seen, wanted = f"{size} bytes", f"a file of at most {largest} bytes"
        raise UsageError(Problem(str(path), seen, wanted, "check that this is the right file"))


def _irregular(path: Path, mode: int) -> Problem:
    if stat.S_ISDIR(mode):
        return Problem(str(path), "a folder", "a file", f"name the file in it: {path / 'NAME'}")
    seen = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
    return Problem(str(path), seen, "a regular file", "save the text to a file and name that")


def _encoding_problem(path: Path, body: bytes) -> Problem | None:
    fix = "save the file as UTF-8"
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Problem(f"{path}:1", "a UTF-16 byte order mark", "UTF-8 text", fix)
    if (at := body.find(b"\0")) >= 0:
        return Problem(_where(path, body, at), "a NUL byte", "UTF-8 text", "delete the byte")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        seen = f"byte 0x{body[error.start]:02x}, which is not UTF-8"
        return Problem(_where(path, body, error.start), seen, "UTF-8 text", fix)
    if (at := body.replace(b"\r\n", b"\n\n").find(b"\r")) >= 0:
        fix = "end lines with LF (or CRLF) alone"
        return Problem(_where(path, body, at), "a lone carriage return", "LF line ends", fix)
    return None


def _where(path: Path, body: bytes, at: int) -> str:
    line = body.count(b"\n", 0, at) + 1
    return f"{path}:{line}"


def _warnings(path: Path, data: bytes) -> list[Problem]:
    found = []
    if data.startswith(_BOM):
        fix = "save as UTF-8 without BOM"
        found.append(Problem(f"{path}:1", "a byte order mark (BOM); skipped", "none", fix))
    if (at := data.find(b"\r\n")) >= 0:
        fix = f"sed -i 's/\\r$//' {path}"
        found.append(
            Problem(_where(path, data, at), "CRLF line ends; read as LF", "LF line ends", fix)
        )
    return found
