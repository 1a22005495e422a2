"""What each report shows, as cells, tallies and traces. Pure.

A cell is invalid as a whole when one of its rounds is: a median of the others would hide it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tetraspark.measure.counters import MEMORY
from tetraspark.measure.report.figure import (
    Cell,
    Gathered,
    Key,
    Quantity,
    Tally,
    TallyKey,
    Trace,
    shortened,
)
from tetraspark.measure.report.one_machine import collectives, start, transport
from tetraspark.measure.report.read import Source
from tetraspark.measure.report.schema import (
    DecodeReport,
    NeedleReport,
    PrefillReport,
    QualityReport,
    SoakReport,
)

DECODE = Quantity("Decode rate", "tok/s", "more", "requests at once", "log2")
FIRST = Quantity("Time to first token", "s", "less", "requests at once", "log2")
ACCEPTED = Quantity(
    "Acceptance length", "tokens a verification step", "more", "requests at once", "log2"
)
PREFILL = Quantity("Prefill rate", "tok/s", "more", "prompt, tokens", "log2")
NEEDLE = Quantity("Time to first token", "s", "less", "prompt, tokens", "log2")
SOAK = Quantity("Rate of all requests", "tok/s", "more", "minutes", "linear")
FREE = Quantity("Memory available", "GiB", "more", "minutes", "linear")
ANSWERS = Quantity("Rate of all answers", "tok/s", "more", "requests at once", "log2")


def gather(sources: Iterable[Source]) -> Gathered:
    """Return what a set of reports shows; the same cell in two reports has the samples of both."""
    found = Gathered()
    for source in sources:
        found = found + BY_SUITE[source.suite](source.report)
    return found


def _faults(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _changed(settings: Iterable[str]) -> list[str]:
    return [f"the server's settings changed: {one}" for one in settings]


def decode(report: DecodeReport) -> Gathered:
    """Of `bench decode`."""
    cells = {}
    for cell in report.cells:
        how = "counted by the server" if cell.counted else "within answers counted by length"
        warm = f"warm-up rounds dropped: {report.plan.warm_up}"
        protocol = f"{cell.sampling}, {cell.max_tokens} tokens a request, {how}, {warm}"
        found = [fault for one in cell.rounds for fault in one.faults]
        found += _changed(report.changed_settings)
        rates = [one.tokens_per_second for one in cell.rounds]
        if None in rates and not found:
            found.append("a round has no rate")
        faults = _faults(found)
        firsts = tuple(second for one in cell.rounds for second in one.first_token_seconds)
        rate = tuple(rate for rate in rates if rate is not None)
        length = () if cell.acceptance_length is None else (cell.acceptance_length,)
        measured = [(DECODE, rate), (FIRST, firsts), *([(ACCEPTED, length)] if length else [])]
        for quantity, samples in measured:
            place = (cell.kind, float(cell.concurrency), f"c{cell.concurrency}")
            cells[Key("decode", quantity, protocol, *place)] = Cell(samples, faults)
    return Gathered(cells)


def prefill(report: PrefillReport) -> Gathered:
    """Of `bench prefill`."""
    cells = {}
    for row in report.rows:
        real = row.text == "real"
        protocol = f"real text: {report.corpus}" if real else "filler: one word over and over"
        faults = [fault for one in row.requests for fault in one.faults]
        rates = tuple(
            one.prompt_tokens / one.first_token_seconds
            for one in row.requests
            if one.prompt_tokens and one.first_token_seconds
        )
        if len(rates) < len(row.requests) and not faults:
            faults.append("a request has no rate")
        key = Key(
            *("prefill", PREFILL, protocol, "real text" if real else "filler"),
            *(float(row.wanted_tokens), shortened(row.wanted_tokens)),
        )
        cells[key] = Cell(rates, _faults(faults + _changed(report.changed_settings)))
    return Gathered(cells)


def needle(report: NeedleReport) -> Gathered:
    """Of `needle`."""
    found = Gathered()
    protocol = f"text: {report.corpus}"
    for case in report.cases:
        length = shortened(case.wanted_tokens)
        said = case.error or f"the answer was {case.answer[:80]!r}"
        note = f"{length} at depth {case.depth:g}: {case.phrase!r} not found, {said}"
        place = TallyKey("needle", protocol, f"{length} tokens", f"depth {case.depth:g}")
        tally = Tally(int(case.found), 1, () if case.found else (note,))
        key = Key("needle", NEEDLE, protocol, "all depths", float(case.wanted_tokens), length)
        seconds = () if case.first_token_seconds is None else (case.first_token_seconds,)
        faults = (f"a request failed: {case.error}",) if case.error else ()
        found = found + Gathered({key: Cell(seconds, faults)}, {place: tally})
    return found


def soak(report: SoakReport) -> Gathered:
    """Of `soak`."""
    plan, waves = report.plan, report.waves
    protocol = (
        f"{plan.streams} streams of {plan.max_tokens} tokens beside a cold prefill of "
        f"{shortened(plan.prefill_tokens)}; {report.corpus}"
    )
    rates = tuple(wave.tokens_per_second for wave in waves)
    key = Key("soak", SOAK, protocol, "rate", 0.0, "all waves")
    errors = [error for wave in waves for error in wave.errors]
    asked = sum(wave.requests for wave in waves)
    equal = sum(wave.repeats_equal for wave in waves)
    tallies = {
        "requests answered": Tally(asked - len(errors), asked, tuple(errors)),
        "greedy repeats equal": Tally(equal, len(waves)),
    }
    points = [(w.began / 60, None if w.errors else w.tokens_per_second) for w in waves]
    traces = [Trace("soak", SOAK, protocol, "rate", tuple(points))]
    memory = tuple((w.began / 60, w.counters[MEMORY]) for w in waves if MEMORY in w.counters)
    if memory:
        traces.append(Trace("soak", FREE, protocol, "memory", memory))
    notes = [f"{name}: {value:+g}" for name, value in report.growth.items() if value]
    return Gathered(
        {key: Cell(rates, _faults(report.faults))},
        {TallyKey("soak", protocol, row, "waves"): tally for row, tally in tallies.items()},
        tuple(traces),
        tuple(notes),
    )


def quality(report: QualityReport) -> Gathered:
    """Of `quality`: a task is right when every attempt at it was."""
    plan = report.plan
    limit = f"{plan.max_tokens} tokens" if plan.max_tokens else "each task's own limit"
    count = len({one.id for one in report.outcomes})
    draw = plan.sampling
    drawn = (
        f"temperature {draw.temperature:g}, top-p {draw.top_p:g}" if draw.temperature else "greedy"
    )
    times = "once" if plan.repeat == 1 else f"{plan.repeat} times"
    protocol = f"{count} tasks, each {times}, {drawn}, {limit}"
    tallies: dict[TallyKey, Tally] = {}
    for kind in dict.fromkeys(one.kind for one in report.outcomes):
        for column, tally in _scores(report, kind).items():
            tallies[TallyKey("quality", protocol, kind, column)] = tally
    place = (float(plan.concurrency), f"c{plan.concurrency}")
    rate = () if report.tokens_per_second is None else (report.tokens_per_second,)
    key = Key("quality", ANSWERS, protocol, "all tasks", *place)
    return Gathered({key: Cell(rate, _faults(report.faults))}, tallies)


def _scores(report: QualityReport, kind: str) -> dict[str, Tally]:
    """Return the right ones of those with a score, and those with a score, of one kind."""
    outcomes = [one for one in report.outcomes if one.kind == kind]
    ids = {one.id for one in outcomes}
    unscored = {one.id for one in outcomes if one.verdict in ("error", "not run")}
    wrong = {one.id for one in outcomes if one.verdict == "wrong"} - unscored
    told = {one.id: f"{one.id} {one.verdict}: {one.why}" for one in outcomes if one.why}
    scored = len(ids) - len(unscored)
    notes = {
        name: tuple(told[one] for one in sorted(found) if one in told)
        for name, found in (("wrong", wrong), ("unscored", unscored))
    }
    return {
        "right, of the scored": Tally(scored - len(wrong), scored, notes["wrong"]),
        "scored": Tally(scored, len(ids), notes["unscored"]),
    }


BY_SUITE: dict[str, Callable[[Any], Gathered]] = {
    "decode": decode,
    "prefill": prefill,
    "needle": needle,
    "soak": soak,
    "quality": quality,
    "start": start,
    "transport": transport,
    "collectives": collectives,
}
