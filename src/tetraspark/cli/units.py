"""`tetraspark units`: systemd units that serve and watch the line."""

import os
import pwd
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import out, print_json, print_problems
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.run_files import replace
from tetraspark.fleet.state_home import VARIABLE, state_home
from tetraspark.line.units import HEADER, Service, UnitFile, units_of
from tetraspark.site.load import load_site
from tetraspark.site.source import read_bytes

PASSED_ON = (VARIABLE, "XDG_STATE_HOME")
"""Variables that decide where state lies: a service has to look where its owner does."""
SYSTEM = "/etc/systemd/system"
USERS = "~/.config/systemd/user"


def units(
    site: SitePath = DEFAULT_SITE,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder to write the unit files to.")
    ] = None,
    user: Annotated[
        bool, typer.Option("--user", help="For your own manager (systemctl --user): no root.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the systemd units of the line and its watch, or write them; nothing is installed."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    login = None if user else pwd.getpwuid(os.getuid()).pw_name
    environment = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    if VARIABLE in environment:  # A service has another working folder.
        environment[VARIABLE] = str(state_home())
    program = (sys.executable, "-m", "tetraspark")
    found = units_of(loaded, Service(program, environment, login))
    paths = None if folder is None else [str(_write(folder, one)) for one in found]
    if json:
        print_json({"units": {one.name: one.text for one in found}, "written": paths})
    elif paths is None:
        out.print("\n".join(f"# {one.name}\n{one.text}" for one in found), markup=False)
    else:
        _print_next(paths, found, user)


def _write(folder: Path, unit: UnitFile) -> Path:
    """Write a unit. Raises UsageError where a file of somebody else's has its name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / unit.name
    if path.exists() and not read_bytes(path).startswith(HEADER.encode()):
        seen, wanted = "a file that `tetraspark units` did not write", "a folder without one"
        raise UsageError(Problem(str(path), seen, wanted, "move it away, or another --out"))
    replace(path, unit.text)
    return path


def _print_next(paths: list[str], found: tuple[UnitFile, ...], user: bool) -> None:
    for path in paths:
        out.print(f"wrote {path}", markup=False)
    words = "--user " if user else ""
    line = found[0].name
    out.print("to start the line at every boot:")
    if user:
        out.print(f"  mkdir -p {USERS} && cp {shlex.join(paths)} {USERS}/", markup=False)
        out.print("  loginctl enable-linger", markup=False)
    else:
        out.print(f"  sudo cp {shlex.join(paths)} {SYSTEM}/", markup=False)
    sudo = "" if user else "sudo "
    out.print(f"  {sudo}systemctl {words}daemon-reload", markup=False)
    out.print(f"  {sudo}systemctl {words}enable --now {line}", markup=False)
