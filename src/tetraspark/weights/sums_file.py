"""A file of hashes as `sha256sum` writes it. Pure: text in, hashes out."""

import os
import re
import shlex
from pathlib import Path

from tetraspark.errors import Problem, UsageError
from tetraspark.site.source import read_text

LINE = re.compile(r"(?P<sha256>[0-9a-fA-F]{64}) [ *](?P<name>.+)")


def parse_sums(text: str, where: str) -> dict[str, str]:
    """Return the hash of each file; `where` names the file in errors.

    Empty lines and lines that begin with `#` are skipped. Raises UsageError with every line that
    is none, and for two hashes of one name.
    """
    found: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            wanted = "64 hex digits, two spaces and a name, as sha256sum prints it"
            problems.append(Problem(f"{where}:{number}", repr(line[:100]), wanted, "correct it"))
            continue
        name, digest = match["name"].removeprefix("./"), match["sha256"].lower()
        if found.setdefault(name, digest) != digest:
            seen = f"another hash of {name!r}"
            problems.append(Problem(f"{where}:{number}", seen, "one hash a file", "remove one"))
    if not found and not problems:
        fix = f"cd CHECKPOINT && sha256sum * > {where}"
        problems.append(Problem(where, "no hashes", "lines of sha256sum", fix))
    if problems:
        raise UsageError(*problems)
    return found


def read_sums(path: Path) -> dict[str, str]:
    """Read such a file. Raises UsageError when it cannot be read, and as `parse_sums` does."""
    there = next(one for one in (path, *path.absolute().parents) if os.access(one, os.F_OK))
    fix = f"ls -l {shlex.quote(str(there))}"
    return parse_sums(read_text(path, "a text file of hashes", fix), str(path))
