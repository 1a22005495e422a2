"""Options that take a number with a fraction, such as seconds: finite, and within bounds."""

import math
from typing import Annotated, Any

import typer

DAY = 86_400


def number(name: str, help: str, least: float, most: float = DAY) -> Any:
    """Return an option for a number from `least` to `most`; for typer, `nan` is within any."""
    return typer.Option(name, min=least, max=most, help=help, callback=_finite)


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number.")
    return value


Timeout = Annotated[float, number("--timeout", "Longest silence of a request, seconds.", 1)]
