"""`tetraspark support-bundle`: one file to send to whoever helps, without secrets."""

import json as jsonlib
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tetraspark.bundle.archive import Index, pack, write_new
from tetraspark.bundle.collect import Gathered, gather, nodes_of
from tetraspark.bundle.redaction import redactor_of
from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.fleet.this_machine import ThisMachine
from tetraspark.line.run import RunStore
from tetraspark.site.load import LoadedSite, load_site

STATUS_SECONDS = 60


def support_bundle(
    site: SitePath = DEFAULT_SITE,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File to write; it must not be there yet.")
    ] = None,
    json: Json = False,
) -> None:
    """Put what the line and its nodes say of themselves into one .tar.gz, secrets taken out."""
    loaded = load_site(site)
    made_at = time.time()
    path = out_file or _default_name(loaded.site.name, made_at)
    if os.path.lexists(path):
        fix = "name another file: --out FILE"
        raise UsageError(Problem(str(path), "the file exists", "a new file", fix))
    with err.status("looking at this machine and every node"):
        found = _gather(loaded)
    redactor = redactor_of(loaded, os.environ)
    data, index = pack(
        loaded.site.name, found.sources, found.missing, found.findings, redactor, made_at
    )
    write_new(path, data)
    print_json({"path": str(path), **index.as_dict()}) if json else _print(path, len(data), index)


def _gather(loaded: LoadedSite) -> Gathered:
    run = RunStore(loaded.site.name).latest()
    local = loaded.site.kind == "local"
    opened: AbstractContextManager[NodeRunner]
    opened = nullcontext(ThisMachine()) if local else SshRunner(logins(loaded))
    with opened as runner:
        return gather(loaded, run, runner, nodes_of(loaded), lambda: _status(loaded.path))


def _status(site: Path) -> str:
    """Return what `tetraspark status --json` prints, whatever it thinks of the line."""
    program = "from tetraspark.cli.main import run; run()"
    argv = [sys.executable, "-c", program, "status", "--site", str(site), "--json"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STATUS_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return _no_status(f"no end after {STATUS_SECONDS} s")
    return done.stdout or _no_status(f"ended with {done.returncode}: {done.stderr[-2000:]}")


def _no_status(why: str) -> str:
    return jsonlib.dumps({"ok": False, "problems": [why]}) + "\n"


def _default_name(site: str, at: float) -> Path:
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%d-%H%M%S")
    return Path(f"tetraspark-support-{site}-{stamp}.tar.gz")


def _print(path: Path, size: int, index: Index) -> None:
    if index.missing:
        table = Table("not in the bundle", "why", box=None)
        for one in index.missing:
            table.add_row(shown(one.name), shown(one.why[:200]))
        out.print(table)
    wrong = [check for check in index.findings if check.verdict == "failed"]
    print_problems((check.problem for check in wrong), "found", "yellow")
    out.print(f"wrote {path} ({size} bytes, {len(index.files)} files, mode 0600)", markup=False)
    out.print("known secrets are taken out; read it before you send it:", markup=False)
    out.print(f"  tar -xzf {path}", markup=False)
