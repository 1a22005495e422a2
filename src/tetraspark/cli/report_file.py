"""The JSON report of a suite: written as it is printed."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, UsageError
from tetraspark.measure.about import About


def write_report(report: Mapping[str, Any], file: Path | None) -> dict[str, Any]:
    """Return a report as plain values, and write it where a file is named.

    Raises UsageError when it cannot be written; the report is lost to that file only.
    """
    plain = {
        key: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        for key, value in report.items()
    }
    if file is not None:
        try:
            file.write_text(json.dumps(plain, indent=1, default=str) + "\n", encoding="utf-8")
        except OSError as error:
            seen = f"not writable: {error.strerror}"
            raise UsageError(
                Problem(str(file), seen, "a file to write to", "another --out")
            ) from error
    return plain


def about_line(about: About) -> str:
    """Return the line that heads a table for people."""
    engine = about.engine.get("version", "engine unknown")
    return f"# {about.suite}: {about.model} at {about.url}, {engine}, on {about.hardware}"
