"""This machine as a node: commands for it run as they would on another one, without ssh."""

import subprocess
from pathlib import Path

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.children import Children
from tetraspark.fleet.command import NodeCommand, OnLine, Result

HERE = "localhost"
"""Name of this machine as the one node of a local line, all of whose ranks are on it."""


class ThisMachine:
    """A NodeRunner for which every node is this machine."""

    def __init__(self) -> None:
        self._children = Children()

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        """Run a command here, as NodeRunner says."""
        try:
            return self._children.run(command.argv, command.timeout, command.stdin, on_line)
        except subprocess.TimeoutExpired as error:
            seen = f"no end of `{command.argv[0]}` after {command.timeout:.0f} s"
            raise RunError(Problem(node, seen, "an answer in time", "uptime")) from error
        except InterruptedError as error:
            raise RunError(Problem(node, str(error), "its end", "run it again")) from error
        except OSError as error:
            seen = f"cannot run {command.argv[0]}: {error.strerror}"
            wanted, fix = f"{command.argv[0]} on this machine", f"command -v {command.argv[0]}"
            raise RunError(Problem(node, seen, wanted, fix)) from error

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        """Raise RunError: what is here needs no copy."""
        raise RunError(Problem(node, f"a copy of {folder} to itself", "another machine"))

    def interrupt(self) -> None:
        """End what runs now, and start nothing more."""
        self._children.end()
