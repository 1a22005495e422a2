"""How the head reaches a worker: the login that rsync uses there, and the check of it first."""

import hashlib
import shlex
from dataclasses import dataclass, replace

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.login import Login
from tetraspark.fleet.rsync_failure import rsync_problem
from tetraspark.fleet.ssh_failure import SSH_FAILED, ssh_problem
from tetraspark.site.schema import Site

CONNECT_SECONDS = 10
SILENT_SECONDS = 60
SSH = (
    *("ssh", "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"),
    *("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"),
    *("-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", "LogLevel=INFO"),
)
INNER_FAILED = 3
# 255 is the exit code of the ssh to the head, so the inner one needs another.
CHECK = f'LC_ALL=C.UTF-8 "$@"; [ $? -eq {SSH_FAILED} ] && exit {INNER_FAILED}; exit 0'


@dataclass(frozen=True)
class Route:
    """From the head to one worker, by `host` of the site: the fabric, not the management network.

    The key is one of the head's own, for the launcher lends its agent to nobody.
    """

    head: str
    login: Login

    @property
    def check(self) -> tuple[str, ...]:
        """The command on the head that logs in and does nothing."""
        words = (*SSH, *self.login.options, "--", self.login.host, "true")
        return ("sh", "-c", CHECK, "check", *words)

    def rsync(self, source: str, target: str) -> tuple[str, ...]:
        """The command on the head that sends the files that its stdin names, each NUL-terminated.

        Exactly these, so there are no rules to include or exclude. What arrived before of a file
        is kept, and compared by rsync itself; nothing is deleted.
        """
        return (
            *("rsync", "--files-from=-", "--from0", "--copy-links", "--times", "--perms"),
            *("--inplace", "--append-verify", "--info=progress2", f"--timeout={SILENT_SECONDS}"),
            *("--rsh", shlex.join((*SSH, *self.login.options))),
            *("--", f"{source}/", f"{self.login.host}:{target}/"),
        )

    def lock(self, target: str) -> str:
        """Return a name for one copy at a time to a folder of a worker."""
        return hashlib.sha256(f"{self.login}:{target}".encode()).hexdigest()[:16]

    def failure(self, rc: int, stderr: str, target: str) -> Problem:
        """Return what it means that rsync ended with `rc`."""
        if rc == SSH_FAILED:
            return self._on_head(ssh_problem(self.login, "rsync", stderr, opened=True))
        return self._on_head(rsync_problem(self.login, rc, stderr, target))

    def _on_head(self, problem: Problem) -> Problem:
        where = f"{self.head} -> {problem.where}"
        return replace(problem, where=where, fix=f"on {self.head}: {problem.fix}")


def route_to(site: Site, node: str) -> Route:
    """Return the route from the head to a worker of a fleet site."""
    worker = next(one for one in site.nodes if one.name == node)
    assert worker.host is not None, "the site refuses a fleet node without a host"
    user = worker.user or (site.ssh.user if site.ssh else None)
    return Route(site.nodes[0].name, Login(node, worker.host, user))


def check_route(runner: NodeRunner, route: Route) -> None:
    """Log in from the head. Raises RunError that says what the head needs to get in."""
    result = runner.run(route.head, NodeCommand(route.check, timeout=3 * CONNECT_SECONDS))
    if result.rc == INNER_FAILED:
        problem = ssh_problem(route.login, "login from the head", result.stderr, opened=False)
        if "permission denied" in problem.seen:
            fix = f"ssh-keygen -t ed25519, unless it has a key; then: {problem.fix}"
            problem = replace(problem, fix=fix)
        raise RunError(route._on_head(problem))
