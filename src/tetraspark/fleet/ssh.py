"""Commands on nodes through the system's OpenSSH: one authenticated session a node, reused.

The user's own ssh configuration counts (aliases, jump hosts, ports, agents); what is set here is
only what a program without a person in front of it needs.
"""

import contextlib
import os
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.children import Children
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.control_folder import ControlFolder
from tetraspark.fleet.login import Login
from tetraspark.fleet.plain import plain
from tetraspark.fleet.rsync_failure import rsync_problem
from tetraspark.fleet.ssh_failure import (
    SSH_FAILED,
    interrupted,
    no_shell,
    not_here,
    ssh_problem,
    too_slow,
)

CONNECT_SECONDS = 10
OPEN_SECONDS = 30.0
ALIVE_SECONDS = 30
"""How long a node may be silent before its session counts as dead."""
TRANSFER_SECONDS = 2 * ALIVE_SECONDS
"""How long rsync may move nothing, by default."""
IDLE_SECONDS = 60
"""How long a session outlives a killed launcher."""

# One hop, one quoting: the login shell takes the line apart into the same words again, and `exec`
# keeps it from taking the first one for a keyword, an assignment or a builtin of its own.
PREFIX = "exec "


class SshRunner:
    """Runs commands on the nodes of a site. To be used in a `with`: it ends its sessions.

    `alive_seconds` is how long a node may be silent before what runs there counts as lost.
    """

    def __init__(self, logins: Iterable[Login], alive_seconds: int = ALIVE_SECONDS) -> None:
        self._logins = {login.node: login for login in logins}
        self._alive = max(alive_seconds, 3)
        self._children = Children()
        self._locks = {node: threading.Lock() for node in self._logins}
        self._open: set[str] = set()
        self._folder = ControlFolder()
        self.folder = self._folder.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        """Run a command on a node, as NodeRunner says.

        Lines and stderr come without terminal codes, stdout as it is.
        """
        login = self._session(node)
        argv = [*self._ssh(login), "--", login.host, PREFIX + shlex.join(command.argv)]
        result = self._run(login, argv, command.timeout, command.stdin, on_line)
        if result.rc == SSH_FAILED:
            problem = ssh_problem(login, command.argv[0], result.stderr, opened=True)
            raise _told(problem, result.stderr)
        return result

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        """Copy a folder with rsync, as NodeRunner says. There are no rules: all of it is wanted."""
        login = self._session(node)
        argv = rsync_words(login, folder, target, self._ssh(login), self._alive * 2)
        result = self._run(login, argv, timeout)
        if result.rc == SSH_FAILED:
            raise _told(ssh_problem(login, "rsync", result.stderr, opened=True), result.stderr)
        if result.rc:
            raise _told(rsync_problem(login, result.rc, result.stderr, target), result.stderr)

    def interrupt(self) -> None:
        """End what runs now, as NodeRunner says: its callers get an error."""
        self._children.end()

    def close(self) -> None:
        """End what still runs and every session."""
        self.interrupt()
        for node in sorted(self._open):
            login = self._logins[node]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [*self._ssh(login), "-O", "exit", "--", login.host],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=OPEN_SECONDS,
                )
        self._folder.remove()

    def _session(self, node: str) -> Login:
        """Open the session of a node, unless it is open."""
        login = self._logins[node]
        with self._locks[node]:
            if node not in self._open:
                self._open_session(login)
                self._open.add(node)
        return login

    def _open_session(self, login: Login) -> None:
        argv = [
            *self._ssh(login, ControlMaster="auto", ControlPersist=str(IDLE_SECONDS)),
            *("--", login.host, "true"),
        ]
        # To a file: the session stays behind and would hold a pipe open.
        with tempfile.TemporaryFile() as said:
            try:
                done = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env=_environment(),
                    timeout=OPEN_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise RunError(too_slow(login, "login", OPEN_SECONDS)) from error
            except OSError as error:
                raise RunError(not_here(argv[0], error)) from error
            said.seek(0)
            text = plain(said.read().decode(errors="replace"))
        if done.returncode == SSH_FAILED:
            raise _told(ssh_problem(login, "login", text, opened=False), text)
        if done.returncode:
            raise _told(no_shell(login, done.returncode, text), text)

    def _ssh(self, login: Login, **more: str) -> list[str]:
        """Return ssh and its options for a node, without destination and command."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": str(self._alive // 3),
            "ServerAliveCountMax": "3",
            "ControlPath": f"{self.folder}/{list(self._logins).index(login.node)}",
            "ControlMaster": "no",
            # What a person's configuration may add for a person's sessions.
            "ClearAllForwardings": "yes",
            "RemoteCommand": "none",
            "LogLevel": "INFO",
        } | more
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", "-T", *login.options, *words]

    def _run(
        self,
        login: Login,
        argv: list[str],
        timeout: float,
        stdin: bytes | Path | None = None,
        on_line: OnLine | None = None,
    ) -> Result:
        what = argv[0] if argv[0] != "ssh" else argv[-1].removeprefix(PREFIX)
        tell = None if on_line is None else lambda line: on_line(plain(line))
        try:
            result = self._children.run(argv, timeout, stdin, tell, _environment())
        except subprocess.TimeoutExpired as error:
            raise RunError(too_slow(login, what, timeout)) from error
        except InterruptedError as error:
            raise RunError(interrupted(login, what)) from error
        except FileNotFoundError as error:
            raise RunError(not_here(argv[0], error)) from error
        return Result(result.rc, result.stdout, plain(result.stderr))


def rsync_words(
    login: Login, folder: Path, target: str, ssh: Sequence[str], timeout: int
) -> list[str]:
    """Return the command that makes a folder of a node equal to a local one, with an absolute path.

    `ssh` is what rsync reaches the node with; `timeout` in seconds without any transfer. By
    checksum, because a file that was changed on the node with its size and time kept would pass
    for the right one.
    """
    return [
        *("rsync", "--recursive", "--links", "--perms", "--times", "--checksum", "--delete"),
        *("--timeout", str(timeout), "--rsh", shlex.join(ssh)),
        *("--", f"{folder.absolute()}/", f"{login.host}:{target}/"),
    ]


def _told(problem: Problem, text: str) -> RunError:
    """Return the error with all that the program said as its note, for a log."""
    error = RunError(problem)
    error.add_note(text.strip())
    return error


def _environment() -> dict[str, str]:
    """Return the caller's environment with messages in English, which are read here."""
    return os.environ | {"LC_ALL": "C.UTF-8"}
