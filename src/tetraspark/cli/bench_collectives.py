"""`tetraspark bench collectives`: our collectives beside their rivals, in one table."""

from collections.abc import Iterator
from typing import Annotated

import typer

from tetraspark.cli.line import Json
from tetraspark.cli.output import err, out, print_json
from tetraspark.measure.collectives import (
    OURS,
    TWO_SHOT,
    Bench,
    Delivery,
    Device,
    Dtype,
    Op,
    Report,
    Row,
    bus_factor,
    parse_size,
)
from tetraspark.measure.collectives_run import measure

FIGURES = ("us", "p90", "busbw", "wrong")
WIDTH = 9


def collectives(
    world: Annotated[int, typer.Option("--world", min=2, max=8, help="Ranks.")] = 4,
    op: Annotated[Op, typer.Option("--op", help="The operation.")] = "all_reduce",
    dtype: Annotated[Dtype, typer.Option("--dtype", help="Type of the values.")] = "bf16",
    smallest: Annotated[str, typer.Option("--min", help="Smallest size, as 4096 or 16K.")] = "16K",
    largest: Annotated[str, typer.Option("--max", help="Largest size; sizes double.")] = "1M",
    lanes: Annotated[int, typer.Option("--lanes", min=1, max=4, help="Lanes to a peer.")] = 1,
    delivery: Annotated[
        Delivery, typer.Option("--delivery", help="Read from the sender, or copied to receivers.")
    ] = "pull",
    in_place: Annotated[
        bool | None,
        typer.Option("--in-place/--out-of-place", help="Ours; all_reduce is in place if unsaid."),
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where the tensors are.")] = "cpu",
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=100_000, help="Rounds a size.")
    ] = 15,
    calls: Annotated[int, typer.Option("--calls", min=1, max=100_000, help="Calls a round.")] = 20,
    json: Json = False,
) -> None:
    """Measure the collectives beside gloo or NCCL in the same run, and check every result."""
    bench = Bench(
        world=world,
        op=op,
        dtype=dtype,
        smallest=parse_size(smallest, "--min"),
        largest=parse_size(largest, "--max"),
        lanes=lanes,
        delivery=delivery,
        in_place=op == "all_reduce" if in_place is None else in_place,
        device=device,
        rounds=rounds,
        calls=calls,
    )
    with err.status(f"measuring {op} of {world} ranks"):
        report = measure(bench)
    if json:
        print_json(report.as_dict())
    else:
        for line in table(report):
            out.print(line, markup=False)
    if not report.ok:
        raise typer.Exit(1)


def table(report: Report) -> Iterator[str]:
    """Yield the lines: those that describe start with #, then one a size, then the verdict."""
    yield from (f"# {line}" for line in _head(report))
    names = list(report.rows[0].samples)
    spans = [WIDTH * (len(FIGURES) + (name != OURS)) for name in names]
    groups = "".join(f"{name:>{span}}" for name, span in zip(names, spans, strict=True))
    yield f"#{'':{WIDTH}}{groups}"
    titles = [*FIGURES, *(title for _ in names[1:] for title in (*FIGURES, "ratio"))]
    yield f"#{'bytes':>{WIDTH}}" + "".join(f"{title:>{WIDTH}}" for title in titles)
    for row in report.rows:
        yield f" {row.size:>{WIDTH}}" + "".join(_cells(report.bench, row))
    yield _verdict(report)


def _head(report: Report) -> Iterator[str]:
    bench = report.bench
    place = "in place" if bench.in_place else "out of place"
    yield f"tetraspark bench collectives: {bench.op}, {bench.dtype}, {bench.world} ranks"
    yield from (f"{name}: {value}" for name, value in report.about.items())
    cores = int(report.about.get("cores", bench.world))
    if cores < bench.world:
        yield f"{bench.world} ranks share {cores} cores: every time includes waiting for a core"
    lanes = f"{bench.lanes} lane{'s' if bench.lanes > 1 else ''}"
    yield f"ours: processes of this machine over shared memory, {bench.delivery}, {lanes}, {place}"
    yield "  (a stand-in for one process a node over RoCE: not a time of four nodes)"
    if TWO_SHOT in bench.own:
        yield "two-shot: ours too, by reduce-scatter and all-gather of the parts; ours is one-shot"
    how = "in place" if bench.op == "all_reduce" else "into one tensor"
    yield f"rivals: torch.distributed's {', '.join(report.rows[0].rivals)}, {how}"
    yield from _method(bench)


def _method(bench: Bench) -> Iterator[str]:
    yield f"rounds: {bench.rounds} of {bench.calls} calls after {bench.calls} to warm up"
    if bench.device == "cpu":
        yield "  ours and rivals take turns in the same processes; timed by each rank's clock"
    else:
        yield "  ours and one rival take turns in the same processes, replaying CUDA graphs, timed"
        yield "  by events; NCCL's two ways are two starts each, so ours is in all four"
    yield "us: of a call, the slowest rank's mean of a round; median and p90 over rounds"
    factor = bus_factor(bench.op, bench.world)
    yield f"busbw: GB/s, bytes / us x {factor:g}, as in nccl-tests, doc/PERFORMANCE.md"
    yield "ratio: us of ours over that of the column's; below 1, ours is faster"
    yield "wrong: values, over all ranks, of one untimed call a round with inputs not seen before"
    if bench.op != "all_gather":
        yield "  ours: in any bit not the fp32 sum in rank order, rounded once"
        yield "  rivals: off by more than adding in another order in their dtype explains"
    else:
        yield "  in any bit not the inputs in rank order"


def _cells(bench: Bench, row: Row) -> Iterator[str]:
    for name, found in row.samples.items():
        yield f"{found.median:{WIDTH}.1f}{found.p90:{WIDTH}.1f}"
        yield f"{bench.busbw(row.size, found.median):{WIDTH}.3f}{found.wrong:{WIDTH}}"
        if name != OURS:
            yield f"{row.ratio(name):{WIDTH}.3f}"


def _verdict(report: Report) -> str:
    word = "PASS" if report.ok else "FAIL"
    wrong = f"{report.wrong_own} of {report.compared_own} values of ours wrong"
    rivals = [f"{name} {report.wrong(name)}" for name in report.rows[0].rivals]
    return f"# {word}: {wrong}; of rivals: {', '.join(rivals)}"
