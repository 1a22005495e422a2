"""Quantities as people read them; what was not told, or is no number, is a dash. Pure."""

import math
from datetime import UTC, datetime

from tetraspark.measure.report.scale import number

NOT_TOLD = "\u2013"
SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
RATES = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")
YEAR = 365 * 86400.0
LAST_SECOND = 253402300799.0
"""The last second of the year 9999, where calendars of Python end."""


def told(value: float | None) -> bool:
    """Whether there is a number."""
    return value is not None and math.isfinite(value)


def amount(value: float | None) -> str:
    """Return a measured value with three digits."""
    return number(value) if value is not None and math.isfinite(value) else NOT_TOLD


def count(value: int | None) -> str:
    """Return a count, thousands apart."""
    return NOT_TOLD if value is None else f"{value:,}"


def size(value: float | None) -> str:
    """Return bytes in powers of 1024: 41.3 GiB."""
    return _scaled(value, 1024.0, SIZES)


def rate(value: float | None) -> str:
    """Return bytes a second in powers of 1000, as links are sold: 312 MB/s."""
    return _scaled(value, 1000.0, RATES)


def _scaled(value: float | None, base: float, units: tuple[str, ...]) -> str:
    if value is None or not math.isfinite(value):
        return NOT_TOLD
    power = 0
    while abs(value) >= 999.5 and power < len(units) - 1:
        value, power = value / base, power + 1
    digits = 0 if power == 0 or abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:,.{digits}f} {units[power]}"


def share(value: float | None) -> str:
    """Return a share of 1 as percent: 43 %."""
    return NOT_TOLD if value is None or not math.isfinite(value) else f"{100 * value:.0f} %"


def duration(seconds: float | None) -> str:
    """Return a time in its two largest units: 0.42 s, 12 s, 3 min 5 s, 3 h 12 min, 2 d 4 h."""
    if seconds is None or not math.isfinite(seconds):
        return NOT_TOLD
    seconds = max(seconds, 0.0)
    if 0.01 <= seconds < 9.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    whole = min(round(seconds), int(100 * YEAR))
    for unit, least, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= least:
            return _two(whole // least, unit, whole % least // part, smaller)
    return _two(whole // 60, "min", whole % 60, "s") if whole >= 60 else f"{whole} s"


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large} {unit} {small} {smaller}" if small else f"{large} {unit}"


def clock(at: float) -> str:
    """Return a Unix time as UTC: 2026-11-30 18:05:12 UTC."""
    if not 0 <= at <= LAST_SECOND:
        return NOT_TOLD
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
