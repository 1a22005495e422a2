"""What tests of a served line share: a site of their own, the command, and waiting."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[1]
RANKS = 4
MAKE = ("MAKE", "MFLAGS")
COMMAND = Path(sys.executable).with_name("tetraspark")


def without_make() -> dict[str, str]:
    """Return the environment without what a `make` above these tests left in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(MAKE)}


def of_ranks(text: str, ranks: int) -> str:
    """Return the text of the example site with fewer nodes: a start imports less then."""
    for rank in range(ranks, RANKS):
        text = text.replace(f'[[nodes]]\nname = "node{rank}"\n', "")
    return text.replace(f"tp = {RANKS}", f"tp = {ranks}")


def write_site(
    folder: Path,
    name: str,
    replace: Mapping[str, str] = MappingProxyType({}),
    ranks: int = RANKS,
    watch: str = "enabled = false",
) -> Path:
    """Write a local site on a free port; `replace` swaps text of the example.

    Nothing watches the line unless `watch`, the text of its section, says so; then its page is
    on a free port.
    """
    text = of_ranks((ROOT / "sites" / "local.toml").read_text(), ranks)
    swaps = {
        'name = "local"': f'name = "{name}"',
        '"../models/tiny"': f'"{ROOT / "models" / "tiny"}"',
        "port = 30000": "port = 0",
    }
    for old, new in {**swaps, **replace}.items():
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    file = folder / f"{name}.toml"
    file.write_text(f"{text}\n[watch]\n{watch}\nport = 0\n")
    return file


class Command:
    """Runs the real `tetraspark` on one site, with a state folder of its own."""

    def __init__(self, site: Path, state: Path) -> None:
        self.site = site
        self.env = os.environ | {"TETRASPARK_STATE": str(state), "COLUMNS": "400"}

    def argv(self, verb: str, *words: str) -> list[str]:
        """Return the argv of a verb on this site."""
        return [str(COMMAND), verb, *words, "--site", str(self.site)]

    def run(self, verb: str, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            self.argv(verb, *words),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def json(self, verb: str, *words: str) -> Any:
        """Run a verb with --json and return what it printed, whatever its exit code."""
        result = self.run(verb, *words, "--json")
        assert result.stdout, result.stderr
        return json.loads(result.stdout)


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; tell whether it did in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files below a folder that hold a text; a line that runs renames some meanwhile."""
    data = text.encode()
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files, f"nothing below {folder}"
    return [str(file) for file in files if data in _bytes_of(file)]


def _bytes_of(file: Path) -> bytes:
    """Return what is in a file, nothing of one that has been renamed since it was listed."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
