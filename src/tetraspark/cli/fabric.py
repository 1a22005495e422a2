"""`tetraspark fabric`: what the network between the nodes is, and whether it carries."""

import typer

from tetraspark.cli.fabric_nccl import nccl
from tetraspark.cli.fabric_prove import prove
from tetraspark.cli.fabric_show import show

fabric = typer.Typer(help="Look at the RoCE network between the nodes.", no_args_is_help=True)


@fabric.callback()
def main() -> None:
    """Look at the RoCE network between the nodes."""


fabric.command()(show)
fabric.command()(prove)
fabric.command()(nccl)
