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
from collections.abc import Iterable
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
from tetraspark.fleet.ssh_words import control_words, rsync_words, ssh_words

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

    `alive_seconds` is how long a node may be silent before what runs there counts as lost, and
    `connect_seconds` how long it may take to answer at first.
    """

    def __init__(
        self,
        logins: Iterable[Login],
        alive_seconds: int = ALIVE_SECONDS,
        connect_seconds: int = CONNECT_SECONDS,
    ) -> None:
        self._logins = {login.node: login for login in logins}
        self._alive = max(alive_seconds, 3)
        self._connect = connect_seconds
        self._children = Children()
        self._locks = {node: threading.Lock() for node in self._logins}
        self._open: set[str] = set()
        self._forwards: set[tuple[str, Path]] = set()
        self._folder = ControlFolder()
        self.folder = self._folder.path

    @property
    def logins(self) -> tuple[Login, ...]:
        """The nodes it knows."""
        return tuple(self._logins.values())

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
            raise self._lost(login, command.argv[0], result.stderr)
        return result

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        """Copy a folder with rsync, as NodeRunner says. There are no rules: all of it is wanted."""
        login = self._session(node)
        argv = rsync_words(login, folder, target, self._ssh(login), self._alive * 2)
        result = self._run(login, argv, timeout)
        if result.rc == SSH_FAILED:
            raise self._lost(login, "rsync", result.stderr)
        if result.rc:
            raise _told(rsync_problem(login, result.rc, result.stderr, target), result.stderr)

    def forward(self, node: str, host: str, port: int) -> Path:
        """Return a socket file that leads to a TCP port, as the node sees it.

        A file of this machine that no other user can reach. Its way is the node's session: a new
        one is opened when that has died. Raises RunError as `run` does.
        """
        if not self._answers(node):
            self._forget(node)
        login = self._session(node)
        path = self.folder / f"{list(self._logins).index(node)}-{host}-{port}"
        with self._locks[node]:
            if (node, path) not in self._forwards:
                path.unlink(missing_ok=True)  # What a session that died has left.
                words = ("-O", "forward", "-L", f"{path}:{host}:{port}", login.host)
                argv = [*control_words(self._socket(login)), *words]
                done = self._run(login, argv, OPEN_SECONDS)
                if done.rc:
                    raise self._lost(login, f"a way to {host}:{port}", done.stderr)
                self._forwards.add((node, path))
        return path

    def _answers(self, node: str) -> bool:
        """Tell whether the session of a node, if there is one, is still there."""
        login = self._logins[node]
        argv = [*control_words(self._socket(login)), "-O", "check", login.host]
        return node in self._open and self._run(login, argv, OPEN_SECONDS).rc == 0

    def _lost(self, login: Login, what: str, stderr: str) -> RunError:
        """Return the error of a session that failed; the next command opens another one."""
        self._forget(login.node)
        return _told(ssh_problem(login, what, stderr, opened=True), stderr)

    def _forget(self, node: str) -> None:
        self._open.discard(node)
        self._forwards = {one for one in self._forwards if one[0] != node}

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

    def _socket(self, login: Login) -> Path:
        return self.folder / str(list(self._logins).index(login.node))

    def _ssh(self, login: Login, **more: str) -> list[str]:
        """Return ssh and its options for a node, without destination and command."""
        return ssh_words(login, self._socket(login), self._alive, self._connect, **more)

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


def _told(problem: Problem, text: str) -> RunError:
    """Return the error with all that the program said as its note, for a log."""
    error = RunError(problem)
    error.add_note(text.strip())
    return error


def _environment() -> dict[str, str]:
    """Return the caller's environment with messages in English, which are read here."""
    return os.environ | {"LC_ALL": "C.UTF-8"}
