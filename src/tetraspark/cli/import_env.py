"""`tetraspark import-env`: a profile of the bash launchers becomes a site file."""

import json as json_text
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
from tetraspark.site.import_files import (
    NewFile,
    refuse_clashes,
    refuse_existing,
    write_all,
)
from tetraspark.site.import_report import Report, printable
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
    if not site_path.name:
        raise UsageError(Problem(str(site_path), "a folder", "a file to write", "-o NAME.toml"))
    key_path = key_file or site_path.with_suffix(".key")
    imported = import_profile(profile, slug(site_path.stem), _key_reference(site_path, key_path))
    text = site_text(imported.draft, imported.report.needs)
    report = _checked(imported, site_path, text)
    files = [NewFile(site_path, text, 0o644)]
    if imported.api_key:
        files.append(NewFile(key_path, f"{imported.api_key}\n", 0o600))
    targets = [file.path for file in files]
    refuse_clashes(envfile, targets)
    refuse_existing(targets, force=force)
    write_all(files)
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
        return _writable_name(key_path.name)
    return _writable_name(str(key_path.absolute()))


def _writable_name(name: str) -> str:
    if name != printable(name):
        seen = "characters that a site file cannot hold"
        raise UsageError(Problem(printable(name), seen, "a printable name", "choose another one"))
    return name


def _checked(imported: Imported, path: Path, text: str) -> Report:
    """Read the written text back as any site file; what it refuses is what is needed."""
    report = imported.report
    try:
        loaded = load_source(decode_source(path, text.encode()))
    except UsageError as error:
        return report if report.needs else replace(report, needs=error.problems)
    return replace(report, warnings=(*report.warnings, *loaded.warnings))


def _text(text: str, style: str = "") -> Text:
    """Return text for the screen: no markup is read in it, and no terminal code gets through."""
    return Text(printable(text), style=style)


def _show(report: Report, site_path: Path, key_path: Path | None) -> None:
    console = Console()
    console.print(_table(report))
    for statement in report.statements:
        console.print(_text(f"not run, line {statement.line}: {statement.text} ({statement.why})"))
    for item in report.added:
        console.print(_text(f"added {item.key}: {item.why}"))
    for warning in report.warnings:
        console.print(_text(f"warning: {warning}", style="yellow"))
    console.print(_text(f"wrote {site_path}" + (f" and {key_path} (0600)" if key_path else "")))
    for problem in report.needs:
        console.print(_text(f"still needed: {problem}", style="red"))
    following = f"tetraspark plan --site {site_path} --explain"
    edit = f"edit {site_path}, then " if report.needs else ""
    console.print(_text(f"next: {edit}{following}"))


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
            _text(entry.name),
            _text(entry.outcome, style=_STYLES[entry.outcome]),
            _text("\n".join(entry.keys)),
            _text(note),
        )
    return table
