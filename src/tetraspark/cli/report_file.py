"""The JSON report of a suite: written as it is printed."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import typer

from tetraspark.cli.output import out, print_json, print_problems, shown
from tetraspark.errors import Problem, UsageError
from tetraspark.measure.about import About
from tetraspark.measure.secret import report_without_key


def conclude(
    report: Mapping[str, Any],
    file: Path | None,
    json: bool,
    key: str | None,
    show: Callable[[], None],
) -> None:
    """End a suite: write its report, print it as JSON or by `show`; exit code 1 unless it is ok.

    A report that cannot be written is printed all the same, and ends with exit code 1. `key` is
    the server's, and stands in no report.
    """
    plain, problem = report_without_key(plain_report(report), key), None
    try:
        _write(plain, file)
    except UsageError as error:
        problem = error
    print_json(plain) if json else show()
    if problem is not None:
        print_problems(problem.problems)
    if problem is not None or not report["ok"]:
        raise typer.Exit(1)


def print_changed(settings: Iterable[str]) -> None:
    """Print each setting that the server has otherwise than when its line became ready."""
    for text in settings:
        out.print(f"changed since the start: {safe(text)}", markup=False)


def plain_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report as values of JSON, which knows no infinities: those become text."""
    return {key: _plain(value) for key, value in report.items()}


def check_out(file: Path | None) -> Path | None:
    """Return --out's file, as a typer callback. Raises as `check_writable`."""
    check_writable(file, "--out")
    return file


def check_writable(file: Path | None, option: str) -> None:
    """Leave an option's file as it is. Raises UsageError when it has no place."""
    if file is None:
        return
    try:
        new = not file.exists()
        if not new and not file.is_file() and not file.is_dir():
            return
        file.open("ab").close()
        if new:
            file.unlink()
    except OSError as error:
        raise _unwritable(file, error, option) from error


def about_line(about: About) -> str:
    """Return the line that heads a table for people."""
    engine = about.engine.get("version", "engine unknown")
    text = f"# {about.suite}: {about.model} at {about.url}, {engine}, on {about.hardware}"
    return safe(text)


def safe(text: str) -> str:
    """Return a server's text as a terminal may have it: `shown`, and what has no encoding too."""
    return shown(text.encode("utf-8", "backslashreplace").decode())


def _write(plain: Mapping[str, Any], file: Path | None) -> None:
    if file is None:
        return
    text = json.dumps(plain, indent=1, default=str, allow_nan=False) + "\n"
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError, option: str = "--out") -> UsageError:
    seen = f"not writable: {error.strerror}"
    return UsageError(Problem(str(file), seen, "a file to write to", f"another {option}"))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
