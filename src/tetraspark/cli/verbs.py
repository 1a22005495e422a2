"""The verbs of the command, each imported when it is asked for: all of them take a second."""

from functools import cache
from pkgutil import resolve_name
from typing import Any

import typer
import typer.core
import typer.main

CLI = "tetraspark.cli"
VERBS = {
    "doctor": f"{CLI}.doctor:doctor",
    "plan": f"{CLI}.plan:plan",
    "serve": f"{CLI}.serve:serve",
    "status": f"{CLI}.status:status",
    "watch": f"{CLI}.watch:watch",
    "logs": f"{CLI}.logs:logs",
    "smoke": f"{CLI}.smoke:smoke",
    "stop": f"{CLI}.stop:stop",
    "import-env": f"{CLI}.import_env:import_env",
    "build": f"{CLI}.build:build",
    "fetch": f"{CLI}.fetch:fetch",
    "pack": f"{CLI}.pack:pack",
    "needle": f"{CLI}.needle:needle",
    "soak": f"{CLI}.soak:soak",
    "quality": f"{CLI}.quality:quality",
    "report": f"{CLI}.report:report",
    "tune": f"{CLI}.tune:tune",
    "rollback": f"{CLI}.rollback:rollback",
    "units": f"{CLI}.units:units",
    "support-bundle": f"{CLI}.support_bundle:support_bundle",
    "bench": f"{CLI}.bench:bench",
    "qualify": f"{CLI}.qualify:qualify",
    "engine": f"{CLI}.engine:engine",
    "weights": f"{CLI}.weights:weights",
    "fabric": f"{CLI}.fabric:fabric",
    "ring": f"{CLI}.ring:ring",
    "receipts": f"{CLI}.receipts:receipts",
}
"""Where each verb is: a function, or a `typer.Typer` for verbs of its own; in the help's order."""


class Verbs(typer.core.TyperGroup):
    """The group of all verbs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, for the help."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb, or None for a name of none."""
        return _command(cmd_name) if cmd_name in VERBS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb that was typed; for a name of none, typer looks for one like it."""
        if args[0] not in VERBS:
            self.commands = {name: _command(name) for name in VERBS}
        return super().resolve_command(ctx, args)


@cache
def _command(name: str) -> Any:
    found, holder = resolve_name(VERBS[name]), typer.Typer(add_completion=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]
