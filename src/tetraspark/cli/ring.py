"""`tetraspark ring`: a ring without a switch, from plan to proof."""

import typer

from tetraspark.cli.ring_plan import plan
from tetraspark.cli.ring_simulate import simulate

ring = typer.Typer(help="Plan a ring without a switch and follow its frames.", no_args_is_help=True)


@ring.callback()
def main() -> None:
    """Plan a ring without a switch and follow its frames."""


for verb in (plan, simulate):
    ring.command()(verb)
