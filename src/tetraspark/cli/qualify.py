"""`tetraspark qualify lanes`: are the RDMA lanes there, do they carry the right bytes, how fast."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tetraspark.cli.line import Json
from tetraspark.cli.output import err, out, print_json
from tetraspark.collectives.failure import BuildError, CollectiveError, RefusedError
from tetraspark.collectives.local_lane import Choice
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.measure.meeting import Meeting

if TYPE_CHECKING:
    from tetraspark.measure.lanes import LanesReport

qualify = typer.Typer(help="Qualify the fabric before anything is served.", no_args_is_help=True)


@qualify.callback()
def main() -> None:
    """Qualify the fabric before anything is served."""


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
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Timed operations.")] = 100,
    limit: Annotated[float, typer.Option("--limit", min=1, help="Seconds to wait.")] = 120.0,
    json: Json = False,
) -> None:
    """Run this on every node at once: checks, connections, patterns, latency and bandwidth."""
    try:
        # Not at the top: torch, an extra, takes seconds to import and no other command needs it.
        from tetraspark.measure.lanes import Qualification, agree_on_wiring, qualify_lanes
    except ModuleNotFoundError as error:
        wanted = "torch, on every node"
        raise RunError(Problem(node, str(error), wanted, "pip install torch")) from error
    address = _address(meet)
    if rank >= world:
        raise UsageError(Problem("--rank", f"{rank}", f"below --world {world}"))
    try:
        choices = [Choice.parse(text) for text in devices.split(",")]
        how = Qualification(VerbsOptions(min_mtu=min_mtu), rounds)
    except ValueError as error:
        raise UsageError(Problem("--devices, --min-mtu", str(error), "what --help says")) from error
    try:
        with err.status("qualifying"), Meeting(rank, world, address, limit) as exchange:
            wiring = agree_on_wiring(exchange, node, choices)
            found = qualify_lanes(rank, exchange, wiring, how)
    except RefusedError as error:
        raise RunError(
            *(Problem(f"rank {one}", reason, "every lane set up") for one, reason in error.reasons)
        ) from error
    except (CollectiveError, BuildError, OSError, ValueError) as error:
        raise RunError(Problem(node, str(error), "every lane set up")) from error
    print_json(found.as_dict()) if json else _print(found)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(Problem("--meet", text, "HOST:PORT"))
    return host, int(port)


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
