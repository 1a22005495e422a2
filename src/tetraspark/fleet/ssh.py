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

from tetraspark.errors import RunError
from tetraspark.fleet.children import Children
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.login import Login
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
IDLE_SECONDS = 60
"""How long a session outlives a killed launcher."""
# A socket's path has 108 bytes (unix(7)), and ssh appends 17 to it while it opens one.
SOCKET_PATH_BYTES = 90

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
        self._folder = tempfile.TemporaryDirectory(prefix="ts-", dir=_socket_home())
        self.folder = self._folder.name

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
        """Run a command on a node, as NodeRunner says."""
        login = self._session(node)
        argv = [*self._ssh(login), "--", login.host, PREFIX + shlex.join(command.argv)]
        result = self._run(login, argv, command.timeout, command.stdin, on_line)
        if result.rc == SSH_FAILED:
            raise RunError(ssh_problem(login, command.argv[0], result.stderr, opened=True))
        return result

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        """Copy a folder with rsync, as NodeRunner says. There are no rules: all of it is wanted.

        By checksum, because a file that was changed on the node with its size and time kept would
        pass for the right one.
        """
        login = self._session(node)
        argv = [
            *("rsync", "--recursive", "--links", "--perms", "--times", "--checksum", "--delete"),
            *("--timeout", str(self._alive * 2), "--rsh", shlex.join(self._ssh(login))),
            *("--", "./", f"{login.host}:{target}/"),
        ]
        result = self._run(login, argv, timeout, cwd=folder)
        if result.rc == SSH_FAILED:
            raise RunError(ssh_problem(login, "rsync", result.stderr, opened=True))
        if result.rc:
            raise RunError(rsync_problem(login, result.rc, result.stderr, target))

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
        self._folder.cleanup()

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
            text = said.read().decode(errors="replace")
        if done.returncode == SSH_FAILED:
            raise RunError(ssh_problem(login, "login", text, opened=False))
        if done.returncode:
            raise RunError(no_shell(login, done.returncode, text))

    def _ssh(self, login: Login, **more: str) -> list[str]:
        """Return ssh and its options for a node, without destination and command."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": str(self._alive // 3),
            "ServerAliveCountMax": "3",
            "ControlPath": f"{self._folder.name}/{list(self._logins).index(login.node)}",
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
        cwd: Path | None = None,
    ) -> Result:
        what = argv[0] if argv[0] != "ssh" else argv[-1].removeprefix(PREFIX)
        try:
            return self._children.run(argv, timeout, stdin, on_line, _environment(), cwd)
        except subprocess.TimeoutExpired as error:
            raise RunError(too_slow(login, what, timeout)) from error
        except InterruptedError as error:
            raise RunError(interrupted(login, what)) from error
        except FileNotFoundError as error:
            raise RunError(not_here(argv[0], error)) from error


def _environment() -> dict[str, str]:
    """Return the caller's environment with messages in English, which are read here."""
    return os.environ | {"LC_ALL": "C.UTF-8"}


def _socket_home() -> str:
    """Return a folder short enough for sockets: the user's runtime folder, or /tmp."""
    for folder in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()):
        if folder and os.access(folder, os.W_OK) and len(folder) < SOCKET_PATH_BYTES - 20:
            return folder
    return "/tmp"
