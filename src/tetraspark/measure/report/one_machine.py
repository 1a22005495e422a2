"""What the benchmarks of one machine show, which no line of four nodes is part of. Pure."""

from tetraspark.measure.report.figure import Cell, Gathered, Key, Quantity, shortened
from tetraspark.measure.report.one_machine_schema import (
    CollectivesReport,
    StartReport,
    TransportReport,
)

START = Quantity("Cold start", "s", "less", "", "category")
TRANSPORT = Quantity("Decode rate, one request", "tok/s", "more", "transport", "category")
CALL = Quantity("Time of a call", "µs", "less", "bytes", "log2", log=True)


def start(report: StartReport) -> Gathered:
    """Of `bench start`."""
    protocol = f"line {report.line}: {report.ranks} ranks of {report.engine}, {report.cores} cores"
    samples = {
        "imports alone": tuple(one.floor for one in report.samples),
        "first token": tuple(one.first_token for one in report.samples),
    }
    return _categories("start", START, protocol, samples)


def transport(report: TransportReport) -> Gathered:
    """Of `bench transport`."""
    protocol = (
        f"line {report.line}: {report.ranks} ranks, {report.cores} cores, "
        f"{report.max_tokens} tokens a request"
    )
    samples: dict[str, tuple[float, ...]] = {}
    for one in report.samples:
        samples[one.transport] = samples.get(one.transport, ()) + one.tokens_per_second
    return _categories("transport", TRANSPORT, protocol, samples)


def _categories(
    suite: str, quantity: Quantity, protocol: str, samples: dict[str, tuple[float, ...]]
) -> Gathered:
    return Gathered(
        {
            Key(suite, quantity, protocol, quantity.title, float(place), name): Cell(found)
            for place, (name, found) in enumerate(samples.items())
        }
    )


def collectives(report: CollectivesReport) -> Gathered:
    """Of `bench collectives`."""
    bench, cells = report.bench, {}
    where = "in place" if bench.in_place else "out of place"
    protocol = (
        f"{bench.op}, {bench.dtype}, {bench.world} ranks of one machine, {bench.device}, "
        f"{bench.delivery}, {bench.lanes} lanes, {where}"
    )
    for row in report.rows:
        for name, found in row.contestants.items():
            wrong = f"{found.wrong} of {found.compared} values wrong"
            key = Key("collectives", CALL, protocol, name, float(row.bytes), shortened(row.bytes))
            cells[key] = Cell(found.rounds_us, (wrong,) if found.wrong else ())
    return Gathered(cells)
