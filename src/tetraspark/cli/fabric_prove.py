"""`tetraspark fabric prove`: which rails carry, by the counters of every device over a window."""

import time
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from tetraspark.cli.fabric_inventory import Source, of_site
from tetraspark.cli.fabric_table import unbroken
from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems, shown
from tetraspark.fabric.prove import Proof
from tetraspark.fabric.prove_watch import watch
from tetraspark.fabric.rail import Rail
from tetraspark.fabric.survey import chosen
from tetraspark.fabric.traffic_run import Rate, plan_traffic, run_flows, slow
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.site.load import load_site

COLOURS = {"carries": "green", "idle": "red", "errors": "red", "unknown": "magenta"}


def prove(
    site: SitePath = DEFAULT_SITE,
    seconds: Annotated[
        int, typer.Option("--seconds", min=1, max=3600, help="Length of the window.")
    ] = 10,
    traffic: Annotated[
        bool, typer.Option("--traffic", help="Make the traffic, with perftest; line stopped.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what every RDMA device moved in a window; exit code 1 unless each rail carried."""
    loaded = load_site(site)
    print_problems(loaded.warnings, "warning", "yellow")
    _, devices = chosen(loaded)
    rates: list[Rate] = []
    with SshRunner(logins(loaded)) as runner:
        planned = plan_traffic(runner, devices, seconds) if traffic else ()

        def window() -> None:
            if planned:
                rates.extend(run_flows(runner, planned))
            else:
                time.sleep(seconds)

        with err.status(f"watching {len(devices)} nodes for {seconds} s"):
            proof = watch(runner, tuple(devices), devices, window)
    if json:
        told = {"rates": [asdict(one) for one in rates]}
        print_json(proof.as_dict() | told | {"slow": [one.as_dict() for one in slow(rates)]})
    else:
        _print(proof, rates, Source(site, None, of_site(site)))
    if not proof.proved or slow(rates):
        raise typer.Exit(1)


def _print(proof: Proof, rates: list[Rate], source: Source) -> None:
    table = unbroken("node", "device", "to", "sent", "received", "share", "errors", "verdict")
    for one in proof.rails:
        cells = (
            *(one.node, one.device, one.far, _size(one.sent, one.packets_sent)),
            _size(one.received, one.packets_received),
            "-" if one.share is None else f"{one.share:.2f}",
            ", ".join(f"{name} +{count}" for name, count in one.errors.items()) or "-",
        )
        table.add_row(*(Text(shown(cell)) for cell in cells), _verdict(one))
    out.print(f"{proof.seconds:.1f} s")
    out.print(table)
    for transit in proof.transits:
        line = f"{transit.node} {transit.netdev} to {transit.redirect}: {transit.packets} frames"
        hardware = "" if transit.hardware is None else f", {transit.hardware} in hardware"
        out.print(shown(line + hardware), markup=False)
    for rate in rates:
        out.print(shown(f"{rate.rail}: {rate.gigabits:.1f} Gb/s both ways"), markup=False)
    problems = map(source.name_in, [*proof.problems(), *slow(rates)])
    print_problems(problems, "finding", "yellow")


def _size(size: int | None, packets: int | None) -> str:
    if size is not None:
        return f"{size / 1e9:.2f} GB"
    return "-" if packets is None else f"{packets} packets"


def _verdict(one: Rail) -> Text:
    anew = ", counters began anew" if one.anew else ""
    unused = "" if one.used else ", not of the site"
    return Text(one.verdict + anew + unused, style=COLOURS[one.verdict] if one.used else "dim")
