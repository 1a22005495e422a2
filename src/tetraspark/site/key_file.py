"""The file of the API key: the site's, or the credential that systemd gives a unit of the line."""

import os
import shlex
from pathlib import Path

from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import LoadedSite
from tetraspark.site.source import read_bytes

CREDENTIAL = "tetraspark-api-key"
"""The credential's name in the units that `tetraspark units` renders."""
FOLDER = "CREDENTIALS_DIRECTORY"
OTHERS = 0o077
OTHERS_OF_A_CREDENTIAL = 0o037
"""systemd lets the unit's login read a credential by an ACL, which shows as the group's right."""


def credential() -> Path | None:
    """Return the credential of the unit that this program runs in, or None."""
    folder = os.environ.get(FOLDER)
    file = Path(folder, CREDENTIAL) if folder else None
    return file if file is not None and file.is_file() else None


def key_file_of(loaded: LoadedSite) -> Path | None:
    """Return the key file of a line, or None for a line without a key.

    A unit's login may have no right to read the site's own file: systemd has it.
    """
    file = loaded.site.api.key_file
    return None if file is None else credential() or loaded.resolve(file, "api.key_file")


def read_key(file: Path) -> str:
    """Read an API key file; only its owner may be able to read it.

    Raises UsageError when the file is missing, holds no key, or can be read or written by others.
    """
    forbidden = OTHERS_OF_A_CREDENTIAL if file == credential() else OTHERS
    data = read_bytes(file, f"write the key to {file}")
    mode = file.stat().st_mode & 0o777
    if mode & forbidden:
        fix = f"chmod 600 {shlex.quote(str(file))}"
        seen = f"mode {mode:o}: its group or everybody can read or change it"
        raise UsageError(Problem(str(file), seen, "readable by its owner alone", fix))
    key = data.decode("utf-8", "replace").strip()
    if not key or key.split() != [key] or not key.isascii() or not key.isprintable():
        wanted = "the API key on one line: ASCII, without spaces"
        raise UsageError(Problem(str(file), "no key that a header can carry", wanted))
    return key
