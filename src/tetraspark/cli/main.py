"""The `tetraspark` command."""

import errno
import os
import shlex
import signal
import sys
from collections.abc import Iterable
from typing import Annotated, Any, NoReturn

import typer

from tetraspark import __version__
from tetraspark.cli.output import ClosedOutput, print_json, print_problems
from tetraspark.cli.verbs import Verbs
from tetraspark.errors import Problem, RunError, TetrasparkError

# What typer raises for arguments it does not know: it exports kinds of it alone.
UsageRefused = typer.BadParameter.__bases__[0]
app = typer.Typer(
    cls=Verbs,
    name="tetraspark",
    help="Serve DeepSeek-V4.1-Flash on four DGX Sparks, or the same line on one CPU machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tetraspark {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print and exit.")
    ] = False,
) -> None:
    """Serve DeepSeek-V4.1-Flash on four DGX Sparks, or the same line on one CPU machine."""


def run() -> None:
    """Run the command; every refusal is printed as its problems, never as a traceback."""
    signal.signal(signal.SIGTERM, _terminate)
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    try:
        app()
    except SystemExit as error:
        # typer prints its own refusals for people, and ends.
        if isinstance(error.__context__, UsageRefused):
            _tell_program([_usage_problem(error.__context__)])
        # typer turns a broken pipe into exit code 1, which would read as a failed check.
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _leave_the_pipe()
    except TetrasparkError as error:
        _refuse(error)
    except BrokenPipeError:
        _leave_the_pipe()
    except OSError as error:
        _drop_output()
        _refuse(RunError(_problem(error)))


def _leave_the_pipe() -> NoReturn:
    """End as a program does whose reader has gone: that is its right, and no error of ours."""
    _drop_output()
    sys.exit(128 + signal.SIGPIPE)


def _problem(error: OSError) -> Problem:
    where = str(error.filename or "output")
    seen = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        return Problem(where, seen, "room on the disk", "df -h")
    look = f"ls -ld {shlex.quote(where)}" if error.filename else "look at where the output goes"
    return Problem(where, seen, "a file or folder that can be used", look)


def _usage_problem(error: Any) -> Problem:
    command = error.ctx.command_path if error.ctx else "tetraspark"
    return Problem(command, error.format_message(), "arguments it knows", f"{command} --help")


def _refuse(error: TetrasparkError) -> NoReturn:
    print_problems(error.problems)
    _tell_program(error.problems)
    sys.exit(error.exit_code)


def _tell_program(problems: Iterable[Problem]) -> None:
    if "--json" in sys.argv:
        print_json({"ok": False, "problems": [one.as_dict() for one in problems]})


def _terminate(number: int, frame: object) -> NoReturn:
    """End as on an error, so that a start that is cut off takes its ranks down."""
    sys.exit(128 + number)


def _drop_output() -> None:
    """Send what is still buffered, and what comes, nowhere: stdout has failed already."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(sys.stdout, ClosedOutput):
        sys.stdout = os.fdopen(1, "w", closefd=False)
