"""Files that a person names: JSON that is read whole or refused, and results that are written."""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, UsageError
from tetraspark.site.source import read_text


def parse_json(text: str, where: str, wanted: str, fix: str) -> Any:
    """Return the value of a JSON text. Raises UsageError for one that is none, `where` in it."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_whole)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        seen = "nested too deeply"
    except UnicodeEncodeError:
        seen = "half of a surrogate pair"
    except ValueError as error:
        seen = str(error)
    else:
        return value
    raise UsageError(Problem(where, f"not JSON: {seen}", wanted, fix))


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > 40:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


@dataclass(frozen=True)
class OutputFile:
    """A file that an option names. An existing one is replaced if it is of this kind already.

    `ours` looks at its text; `kind` names what it should be, for messages.
    """

    path: Path
    option: str
    kind: str
    ours: Callable[[str], bool]

    def require(self) -> None:
        """Raise UsageError when it could not be written, or is something else."""
        if not self.path.is_file():
            folder = self.path if self.path.is_dir() else self.path.parent
            if self.path.is_dir() or not folder.is_dir():
                what = "a folder" if self.path.is_dir() else f"no folder {folder}"
                self._refuse(what)
            return
        try:
            old = read_text(self.path, self.kind, f"another {self.option}")
        except UsageError:
            old = "?"
        if old.strip() and not self.ours(old):
            self._refuse(f"it exists and is not {self.kind}")

    def write(self, text: str) -> None:
        """Write it, whole or not at all. Raises UsageError, as `require` does."""
        self.require()
        try:
            if self.path.exists() and not self.path.is_file():
                self.path.write_text(text, encoding="utf-8")
            else:
                _replace(Path(os.path.realpath(self.path)), text)
        except OSError as error:
            self._refuse(f"not writable: {error.strerror or error}")

    def _refuse(self, seen: str) -> None:
        wanted = f"a new file, or {self.kind} to replace"
        raise UsageError(Problem(str(self.path), seen, wanted, f"another {self.option}"))


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    new = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
