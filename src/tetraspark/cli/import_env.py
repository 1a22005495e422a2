"""`tetraspark import-env`: a profile of the bash launchers becomes a site file."""

import json as json_text
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tetraspark.errors import Problem, UsageError
from tetraspark.site.envfile import parse_envfile
from tetraspark.site.import_env import Imported, import_profile
from tetraspark.site.import_report import Report
from tetraspark.site.load import load_source
from tetraspark.site.section import slug
from tetraspark.site.site_text import site_text
from tetraspark.site.source import decode_source, read_bytes

_STYLES = {"carried": "green", "env": "yellow", "not carried": "red"}


def import_env(
    envfile: Annotated[Path, typer.Argument(help="profile of the bash launchers (.env.tp4)")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="site file to write")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="file for the API key (default: NAME.key)")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print the report as JSON")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite existing files")] = False,
) -> None:
    """Turn a profile of the bash launchers into a site file; nothing in it is ever run."""
    profile = parse_envfile(envfile, read_bytes(envfile))
    site_path = output or Path(f"{slug(envfile.name.removeprefix('.env'))}.toml")
    key_path = key_file or site_path.with_suffix(".key")
    imported = import_profile(profile, slug(site_path.stem), _key_reference(site_path, key_path))
    text = site_text(imported.draft, imported.report.needs)
    report = _checked(imported, site_path, text)
    _refuse_overwrite([site_path, *([key_path] if imported.api_key else [])], force)
    if imported.api_key:
        _write(key_path, f"{imported.api_key}\n", 0o600)
    _write(site_path, text, 0o644)
    if json:
        written = {"site": str(site_path), "loads": not report.needs, **report.as_dict()}
        typer.echo(json_text.dumps(written, indent=2))
    else:
        _show(report, site_path, key_path if imported.api_key else None)
    if report.needs:
        raise typer.Exit(1)


def _key_reference(site_path: Path, key_path: Path) -> str:
    """Write the key file as `api.key_file` takes it: relative to the site file where it can be."""
    if key_path.parent.absolute() == site_path.parent.absolute():
        return key_path.name
    return str(key_path.absolute())


def _checked(imported: Imported, path: Path, text: str) -> Report:
    """Read the written text back as any site file; what it refuses is what is needed."""
    report = imported.report
    try:
        loaded = load_source(decode_source(path, text.encode()))
    except UsageError as error:
        return report if report.needs else replace(report, needs=error.problems)
    return replace(report, warnings=(*report.warnings, *loaded.warnings))


def _refuse_overwrite(paths: list[Path], force: bool) -> None:
    problems = [
        Problem(str(path), "the file exists", "a new file", "add --force, or choose another name")
        for path in paths
        if path.exists() and not force
    ]
    if problems:
        raise UsageError(*problems)


def _write(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags, mode)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            # an existing file keeps its mode through O_CREAT
            os.fchmod(handle, mode)
            file.write(text)
    except OSError as error:
        fix = "choose a writable place"
        seen = f"cannot be written: {error.strerror}"
        raise UsageError(Problem(str(path), seen, "a writable file", fix)) from None


def _show(report: Report, site_path: Path, key_path: Path | None) -> None:
    console = Console()
    console.print(_table(report))
    for statement in report.statements:
        console.print(Text(f"not run, line {statement.line}: {statement.text} ({statement.why})"))
    for item in report.added:
        console.print(Text(f"added {item.key}: {item.why}"))
    for warning in report.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
    console.print(Text(f"wrote {site_path}" + (f" and {key_path} (0600)" if key_path else "")))
    for problem in report.needs:
        console.print(Text(f"still needed: {problem}", style="red"))
    following = f"tetraspark plan --site {site_path} --explain"
    edit = f"edit {site_path}, then " if report.needs else ""
    console.print(Text(f"next: {edit}{following}"))


def _table(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("line", "variable", "outcome", "key", "note"):
        table.add_column(column, overflow="fold")
    for entry in report.entries:
        note = entry.why
        if entry.earlier:
            lines = ", ".join(str(line) for line in entry.earlier)
            note = f"{note}; replaces line {lines}".removeprefix("; ")
        table.add_row(
            str(entry.line),
            Text(entry.name),
            Text(entry.outcome, style=_STYLES[entry.outcome]),
            Text("\n".join(entry.keys)),
            Text(note),
        )
    return table
