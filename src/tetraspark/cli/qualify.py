"""`tetraspark qualify`: the whole line with a receipt, or the RDMA lanes from each of its nodes."""

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tetraspark.cli.line import Json
from tetraspark.cli.number import number
from tetraspark.cli.output import err, out, print_json
from tetraspark.cli.qualify_fabric import fabric
from tetraspark.cli.qualify_run import check, run
from tetraspark.collectives.local_lane import MTUS, Choice
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import MAX_DEVICES, Wiring
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.measure.meeting import Meeting
from tetraspark.measure.place import Place
from tetraspark.measure.refusals import told

if TYPE_CHECKING:
    from tetraspark.measure.lanes import LanesReport, Qualification

qualify = typer.Typer(help="Qualify a line, or its fabric alone.", no_args_is_help=True)


MEET = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):([0-9]{1,5})")
NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@qualify.callback()
def main() -> None:
    """Qualify a line, or its fabric alone."""


qualify.command()(run)
qualify.command()(check)
qualify.command()(fabric)


@qualify.command()
def lanes(
    rank: Annotated[int, typer.Option("--rank", min=0, max=7, help="This node, from 0.")],
    world: Annotated[int, typer.Option("--world", min=2, max=8, help="Number of nodes.")],
    meet: Annotated[str, typer.Option("--meet", help="HOST:PORT where rank 0 listens.")],
    node: Annotated[str, typer.Option("--node", help="Name of this node in messages.")],
    devices: Annotated[
        str, typer.Option("--devices", help="DEVICE[:PORT][@ADDRESS],... one a lane, in order.")
    ],
    min_mtu: Annotated[int, typer.Option("--min-mtu", help="Smallest RDMA MTU.")] = 4096,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=1_000_000, help="Timed operations.")
    ] = 100,
    limit: Annotated[float, number("--limit", "Seconds to wait.", 1)] = 120.0,
    json: Json = False,
) -> None:
    """Run this on every node at once: checks, connections, patterns, latency and bandwidth."""
    address = _address(meet)
    choices = _devices(devices)
    options = _options(min_mtu)
    _check(rank, world, node)
    try:
        # Not before: torch, an extra, takes seconds to import and no other command needs it.
        from tetraspark.measure.lanes import Qualification, agree_on_wiring, qualify_lanes
    except ModuleNotFoundError as error:
        wanted = "torch, on every node"
        raise RunError(Problem(node, str(error), wanted, "pip install torch")) from error
    how = Qualification(options, rounds)
    start = partial(_start, world=world, meet=meet, choices=choices, how=how)
    with (
        err.status("qualifying"),
        Meeting(rank, Place(world, address, limit, node, start)) as exchange,
    ):
        if exchange.strangers:
            hosts = ", ".join(exchange.strangers)
            err.print(f"strangers came to {meet} and were refused: {hosts}", markup=False)
        wiring = agree_on_wiring(exchange, node, choices, how)
        with told(wiring.nodes, rank):
            found = qualify_lanes(rank, exchange, wiring, how)
    print_json(found.as_dict()) if json else _print(found)


def _check(rank: int, world: int, node: str) -> None:
    if rank >= world:
        raise UsageError(Problem("--rank", f"{rank}", f"below --world {world}", "--rank 0"))
    if not NODE.fullmatch(node):
        wanted = "a name of letters, digits, `.`, `_` and `-`, at most 63"
        raise UsageError(Problem("--node", repr(node), wanted, '--node "$(hostname)"'))


def _options(min_mtu: int) -> VerbsOptions:
    try:
        return VerbsOptions(min_mtu=min_mtu)
    except ValueError as error:
        wanted = f"one of {', '.join(map(str, MTUS))}"
        raise UsageError(Problem("--min-mtu", str(min_mtu), wanted, "--min-mtu 1024")) from error


def _address(text: str) -> tuple[str, int]:
    match = MEET.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65536:
        wanted = "HOST:PORT, a name or an IPv4 address, and 1 to 65535"
        fix = "--meet 10.0.0.1:9000, with the address of the node of rank 0"
        raise UsageError(Problem("--meet", text, wanted, fix))
    return match[1], int(match[2])


def _devices(text: str) -> list[Choice]:
    fix = "--devices rocep1s0f0,roceP2p1s0f0; `ibv_devinfo -l` lists them"
    try:
        choices = [Choice.parse(one) for one in text.split(",")]
    except ValueError as error:
        wanted = "DEVICE[:PORT][@ADDRESS],..."
        raise UsageError(Problem("--devices", str(error), wanted, fix)) from error
    try:
        Wiring.uniform(["this", "another"], [choices, choices])
    except ValueError as error:
        wanted = f"1 to {MAX_DEVICES} devices, each once"
        raise UsageError(Problem("--devices", text, wanted, fix)) from error
    return choices


def _start(rank: int, *, world: int, meet: str, choices: list[Choice], how: "Qualification") -> str:
    """Return the command that starts a rank; its node's name and addresses are its own."""
    devices = ",".join(
        f"{replace(one, address=None)}{'@ADDRESS' if one.address else ''}" for one in choices
    )
    return (
        f"tetraspark qualify lanes --rank {rank} --world {world} --meet {meet} --node NAME "
        f"--devices {devices} --min-mtu {how.options.min_mtu} --rounds {how.rounds}"
    )


def _print(found: "LanesReport") -> None:
    out.print(
        f"# {found.world} nodes; set-up with checks and patterns took {found.open_s:.2f} s; "
        f"medians of {found.rounds}, slowest rank, each lane alone",
        markup=False,
    )
    ports = Table("node", "device", "address", "MTU", "events", "sent, words or packets", box=None)
    for account in found.ranks:
        for one in account["devices"]:
            events = ", ".join(f"{name} {count}" for name, count in one["events"].items() if count)
            counters = one["counters"]
            sent = counters.get("port_xmit_data", counters.get("sent_pkts", "not counted"))
            cells = (account["node"], one["device"], one["address"], one["mtu"], events or "none")
            ports.add_row(*map(str, cells), str(sent))
    out.print(ports)
    speeds = Table("lane", "devices", "16 B all-reduce, us", "sent, GB/s", "patterns", box=None)
    for lane in found.lanes:
        figures = (f"{lane.small_us:.1f}", f"{lane.gigabytes_per_s:.3f}")
        speeds.add_row(str(lane.lane), " ".join(lane.devices), *figures, "right")
    out.print(speeds)
    unknown = {name for account in found.ranks for name in account["pci_domain_unknown"]}
    if unknown:
        out.print(f"not checked, since not on PCI: domain of {', '.join(sorted(unknown))}")
