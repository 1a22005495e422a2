"""Reports as the suites write them, through the suites' own values, with numbers made up here."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tetraspark.measure import about
from tetraspark.measure.about import About, HardwareClass
from tetraspark.measure.collectives import Bench
from tetraspark.measure.collectives import Report as CollectivesReport
from tetraspark.measure.collectives import Row as CollectivesRow
from tetraspark.measure.collectives import Samples as CollectivesSamples
from tetraspark.measure.decode import DEFAULT, Cell, Round
from tetraspark.measure.needle import Needle
from tetraspark.measure.prefill import Prefill, Row
from tetraspark.measure.prompts import KINDS
from tetraspark.measure.soak import SoakPlan, SoakReport, Wave
from tetraspark.measure.start import Sample, StartReport
from tetraspark.measure.transport import Sample as TransportSample
from tetraspark.measure.transport import TransportReport

LINE = About(
    suite="decode",
    at="2026-11-30T12:00:00+00:00",
    tetraspark=about.this_version(),
    url="http://127.0.0.1:30000/v1",
    model="tiny",
    line="local",
    run="20261130-120000-000000",
    site_sha256="ab" * 32,
    hardware_class="stand-in",
    hardware="4 ranks on one machine's CPU (a stand-in)",
    client="x86_64, 2 cores, Linux",
    engine={"version": "0.5.23", "tp_size": 4, "max_running_requests": 8},
)


def said(suite: str, hardware_class: HardwareClass = "stand-in", **more: Any) -> dict[str, Any]:
    """Return `about` of a report."""
    return replace(LINE, suite=suite, hardware_class=hardware_class, **more).as_dict()


def round_(rate: float | None, *faults: str) -> Round:
    """Return a round of a cell."""
    return Round(rate, 2.0, None, (0.1, 0.12), 30, 64, 0, 1, faults)


def decode(speed: float = 1.0, broken: int = 16, **more: Any) -> dict[str, Any]:
    """Return a decode report: four kinds, c1 to c16; the concurrency `broken` is invalid."""
    cells = []
    for place, kind in enumerate(KINDS):
        for count in (1, 2, 4, 8, 16):
            rate = speed * (40 + 12 * place) * count**0.6
            rounds = tuple(round_(rate * share) for share in (0.96, 1.0, 1.05))
            if count == broken:
                rounds = (rounds[0], round_(rate, f"at most 8 of {count} requests ran at once"))
            cells.append(Cell(kind, "greedy", count, 64, True, rounds, 2.4).as_dict())
    plan = asdict(DEFAULT)
    return {
        "about": said("decode", **more),
        "plan": plan,
        "cells": cells,
        "changed_settings": [],
        "ok": False,
    }


def prefill(speed: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return a prefill report of real text and filler."""
    rows = []
    for text, factor in (("real", 1.0), ("filler", 1.3)):
        for tokens in (256, 1024, 4096, 16384):
            seconds = tokens / (800 * speed * factor * (1 - 50 / tokens))
            requests = tuple(Prefill(tokens, 0, seconds * slow, ()) for slow in (0.9, 1.0, 1.2))
            rows.append(Row(text, tokens, requests).as_dict())  # type: ignore[arg-type]  # Literal
    return {
        "about": said("prefill", **more),
        "corpus": "Python 3.11 documentation",
        "rows": rows,
        "changed_settings": [],
        "ok": True,
    }


def needle(**more: Any) -> dict[str, Any]:
    """Return a needle report in which one phrase is not found and one request fails."""
    cases = [
        Needle(tokens, depth, "amber falcon 12", "amber falcon 12", tokens, 0, tokens / 900, None)
        for tokens in (256, 1024)
        for depth in (0.0, 0.5, 1.0)
    ]
    cases[1] = replace(cases[1], answer="I do not know.")
    cases[5] = replace(cases[5], answer="", first_token_seconds=None, error="ReadTimeout: late")
    return {
        "about": said("needle", **more),
        "corpus": "Python 3.11 documentation",
        "cases": [case.as_dict() for case in cases],
        "ok": False,
    }


def soak(**more: Any) -> dict[str, Any]:
    """Return a soak report of twelve waves, one of which had an error."""
    waves = tuple(
        Wave(
            number=number,
            began=number * 30.0,
            seconds=30.0,
            requests=6,
            completion_tokens=3000,
            tokens_per_second=100.0 + number % 4,
            prefill_tokens=1024,
            prefill_first_token_seconds=1.0,
            errors=("wave 7: ReadTimeout",) if number == 7 else (),
            repeats_equal=number != 3,
            counters={"rank0.failed": 0.0, "mem_available_gib": 12.0 - number * 0.05},
        )
        for number in range(12)
    )
    found = SoakReport(waves, waves[0].counters, ("rank0.failed",), False)
    return {
        "about": said("soak", **more),
        "plan": asdict(SoakPlan(6, 4, 48, 1024, 0, 60)),
        "corpus": "Python 3.11 documentation",
        **found.as_dict(),
        "ok": False,
    }


def quality(**more: Any) -> dict[str, Any]:
    """Return a report of four tasks: two right, one wrong at its second attempt, one not run."""
    told = (
        ("NUMBER.001", "NUMBER", 1, "right", ""),
        ("NUMBER.002", "NUMBER", 1, "right", ""),
        ("NUMBER.003", "NUMBER", 1, "right", ""),
        ("NUMBER.003", "NUMBER", 2, "wrong", "17"),
        ("CODE.001", "CODE", 1, "not run", "sandbox: no namespaces"),
    )
    names = ("id", "kind", "attempt", "verdict", "why")
    outcomes = [dict(zip(names, one, strict=True)) for one in told]
    sampling = {"temperature": 0.0, "top_p": 1.0}
    return {
        "about": said("quality", **more),
        "plan": {"concurrency": 8, "repeat": 2, "sampling": sampling, "max_tokens": None},
        "outcomes": outcomes,
        "faults": ["1 tasks: not run"],
        "tokens_per_second": 31.0,
        "ok": False,
    }


def start() -> dict[str, Any]:
    """Return a report of cold starts."""
    samples = (Sample(31.0, 36.0), Sample(30.0, 34.0), Sample(33.0, 39.5))
    return dict(StartReport("local", "0.5.23", 4, 2, samples).as_dict())


def transport() -> dict[str, Any]:
    """Return a report of the transport on and off."""
    samples = (
        TransportSample("shm", (40.0, 41.0, 39.0), (400.0,), 0.1, "Hello"),
        TransportSample("off", (15.0, 14.0, 16.0), (90.0,), 0.1, "Hello"),
    )
    return dict(TransportReport("local", 4, 2, 64, samples).as_dict())


def collectives(wrong: int = 0) -> dict[str, Any]:
    """Return a report of collectives, with so many wrong values of ours at the largest size."""
    bench = Bench(4, "all_reduce", "bf16", 16384, 131072, 1, "pull", True, "cpu", 3, 20)
    rows = tuple(
        CollectivesRow(
            size,
            {
                "ours": CollectivesSamples(
                    (90.0, 95.0, 99.0), wrong if size == 131072 else 0, 8192
                ),
                "gloo": CollectivesSamples((3000.0, 3300.0, 5200.0), 0, 8192),
            },
        )
        for size in bench.sizes()
    )
    return dict(CollectivesReport(bench, {"cpu": "x86-64", "cores": "2"}, rows).as_dict())


def everything() -> dict[str, dict[str, Any]]:
    """Return a report of each suite by the name of its file."""
    return {
        "decode": decode(),
        "prefill": prefill(),
        "needle": needle(),
        "soak": soak(),
        "quality": quality(),
        "start": start(),
        "transport": transport(),
        "collectives": collectives(wrong=3),
    }


def write(folder: Path, reports: Mapping[str, dict[str, Any]]) -> list[Path]:
    """Write reports as the verbs do; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, report in reports.items():
        file = folder / f"{name}.json"
        file.write_text(json.dumps(report, indent=1, default=str) + "\n")
        files.append(file)
    return files
