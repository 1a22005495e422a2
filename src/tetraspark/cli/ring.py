"""`tetraspark ring`: a ring without a switch, from plan to proof, and back."""

import typer

from tetraspark.cli.ring_apply import apply, confirm, diff, rollback, status, verify
from tetraspark.cli.ring_plan import plan
from tetraspark.cli.ring_simulate import simulate

ring = typer.Typer(help="A ring without a switch: planned, applied, proven.", no_args_is_help=True)


@ring.callback()
def main() -> None:
    """A ring without a switch: planned, applied, proven."""


for verb in (plan, simulate, diff, apply, verify, confirm, rollback, status):
    ring.command()(verb)
