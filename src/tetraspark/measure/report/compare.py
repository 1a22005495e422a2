"""Two sets of reports side by side: what may stand beside what, and by how much it differs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tetraspark.errors import Problem, UsageError
from tetraspark.measure.about import HardwareClass
from tetraspark.measure.report.figure import Cell, Gathered, Key
from tetraspark.measure.report.gather import gather
from tetraspark.measure.report.read import Source

ONE_OF_A_SET = ("model", "hardware", "site_sha256")
"""What the reports of one set have in common, or a median over them means nothing."""


@dataclass(frozen=True)
class Pair:
    """One cell in both sets, or in one of them."""

    key: Key
    run: Cell | None
    against: Cell | None

    @property
    def ratio(self) -> float | None:
        """Median of the run over that of the other; None where either is no number."""
        if not (self.run and self.run.valid and self.against and self.against.valid):
            return None
        return self.run.median / self.against.median if self.against.median else None

    @property
    def within_spread(self) -> bool:
        """Whether the samples of both overlap: then the ratio may be chance."""
        if self.ratio is None or self.run is None or self.against is None:
            return False
        return self.run.low <= self.against.high and self.against.low <= self.run.high


@dataclass(frozen=True)
class Comparison:
    """Both sets, all of one class of hardware; `against` may be empty."""

    runs: tuple[Source, ...]
    against: tuple[Source, ...]
    hardware_class: HardwareClass
    run: Gathered
    other: Gathered

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Every cell of either set, in the order of the reports."""
        keys = dict.fromkeys([*self.run.cells, *self.other.cells])
        return tuple(Pair(key, self.run.cells.get(key), self.other.cells.get(key)) for key in keys)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of the page, for `--json`; an invalid cell has reasons alone."""
        return {
            "hardware_class": self.hardware_class,
            "runs": [_source(one) for one in self.runs],
            "against": [_source(one) for one in self.against],
            "cells": [_pair(one) for one in self.pairs],
        }


def compare(runs: Sequence[Source], against: Sequence[Source]) -> Comparison:
    """Put two sets side by side. Raises UsageError for what may not be."""
    for name, sources in (("RUN", runs), ("--against", against)):
        _require_one_subject(name, sources)
    found = _one_class([*runs, *against])
    return Comparison(tuple(runs), tuple(against), found, gather(runs), gather(against))


def _one_class(sources: Sequence[Source]) -> HardwareClass:
    """Refuse numbers of a stand-in beside those of Sparks, or of who knows what."""
    classes = dict.fromkeys(one.hardware_class for one in sources)
    if len(classes) > 1:
        first = sources[0]
        other = next(one for one in sources if one.hardware_class != first.hardware_class)
        seen = f'hardware_class "{other.hardware_class}" beside "{first.hardware_class}"'
        raise UsageError(
            Problem(
                where=f"{other.path}: about.hardware_class",
                seen=f"{seen} of {first.path}",
                wanted="one class of hardware on a page: numbers of a stand-in say nothing "
                "about a Spark",
                fix="a page for each class",
            )
        )
    return sources[0].hardware_class


def _require_one_subject(name: str, sources: Sequence[Source]) -> None:
    """Refuse a set whose reports are of two models or machines, or one report twice."""
    told = [one for one in sources if one.about is not None]
    for one in told[1:]:
        for key in ONE_OF_A_SET:
            mine, first = getattr(one.about, key), getattr(told[0].about, key)
            if mine != first:
                where, seen = f"{one.path}: about.{key}", f"{mine!r}, and {first!r} in "
                wanted = f"one {key} in {name}: medians are over all its reports"
                fix = "put one of them into the other set (--against)"
                raise UsageError(Problem(where, f"{seen}{told[0].path}", wanted, fix))
    seen_before: dict[str, Source] = {}
    for one in sources:
        if one.sha256 in seen_before:
            seen = f"the same report as {seen_before[one.sha256].path}"
            wanted = "each report once: twice it would look like two measurements"
            raise UsageError(Problem(str(one.path), seen, wanted, "leave one out"))
        seen_before[one.sha256] = one


def _source(source: Source) -> dict[str, Any]:
    return {"file": str(source.path), "sha256": source.sha256, "suite": source.suite}


def _pair(pair: Pair) -> dict[str, Any]:
    key = pair.key
    return {
        "suite": key.suite,
        "quantity": key.quantity.title,
        "unit": key.quantity.unit,
        "protocol": key.protocol,
        "panel": key.panel,
        "at": key.label,
        "run": _cell(pair.run),
        "against": _cell(pair.against),
        "ratio": pair.ratio,
        "within_spread": pair.within_spread,
    }


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    if not cell.valid:
        return {"valid": False, "why": cell.why}
    found = {"median": cell.median, "low": cell.low, "high": cell.high}
    return {"valid": True, **found, "samples": len(cell.samples)}
