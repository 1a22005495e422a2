"""Bytes for people."""

from tetraspark.fleet.meminfo import GIB


def gib(count: float) -> str:
    """Return bytes as GiB with one decimal, smaller amounts as MiB."""
    return f"{count / GIB:.1f} GiB" if count >= GIB / 10 else f"{count / (1 << 20):.0f} MiB"
