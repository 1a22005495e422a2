"""What OpenSSH says when it fails, and what to do about it. Pure: text in, a problem out."""

import re

from tetraspark.errors import Problem
from tetraspark.fleet.failure import Kind, first_kind, kind
from tetraspark.fleet.login import Login

SSH_FAILED = 255
"""Exit code of ssh when ssh itself failed; a command never ends with it (ssh(1), EXIT STATUS)."""


# In a fix, `{ssh}` is the command with its login, `{login}` the login, `{host}` the bare host.
KINDS = (
    kind(
        "host key changed",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host key this machine knows",
        "make sure the node was set up anew, then: ssh-keygen -R {host} && {ssh} true",
    ),
    kind(
        "host key unknown",
        r"No \S+ host key is known for|Host key verification failed",
        "a host key this machine knows",
        "log in once and compare the fingerprint: {ssh} true",
    ),
    kind(
        "key file unusable",
        r"UNPROTECTED PRIVATE KEY FILE|Load key .*: (?!Permission denied)|no such identity: ",
        "a private key that only you can read",
        "chmod 600 the key, or correct ssh.identity_file; then: {ssh} true",
    ),
    kind(
        "configuration",
        r"Bad configuration option|Bad owner or permissions on|terminating, \d+ bad configuration",
        "an ssh configuration that ssh accepts",
        "ssh -G {host}",
    ),
    kind(
        "permission denied",
        r"Permission denied \(|Too many authentication failures|Load key ",
        "a login without a password",
        "ssh-copy-id {login}",
    ),
    kind(
        "unknown host",
        r"Could not resolve hostname",
        "a name this machine can resolve",
        "getent hosts {host}; correct `host` or `ssh_host` of the node",
    ),
    kind(
        "no answer of sshd",
        r"timed out during banner exchange",
        "an ssh server that answers: the machine is there, but hangs",
        "look at its console or power-cycle it, then: {ssh} true",
    ),
    kind(
        "refused",
        r"Connection refused",
        "an ssh server on that port",
        "on the node: sudo systemctl start ssh",
    ),
    kind(
        "timed out",
        r"connect to (host|address) .*(timed out|Operation timed out)",
        "a machine that answers",
        "ping -c 3 {host}; is it on, and is this its management network?",
    ),
    kind(
        "no route",
        r"No route to host|Network is unreachable|Host is down",
        "a machine that answers",
        "ping -c 3 {host}; is it on, and is this its management network?",
    ),
    kind(
        "closed at login",
        r"kex_exchange_identification|Connection (closed|reset) by (\S+|UNKNOWN port \d+)"
        r"|Unable to negotiate",
        "an ssh server that lets this machine log in",
        "{ssh} -v true; on the node: sudo journalctl -u ssh -n 20",
    ),
)
DIED = kind(
    "session died",
    r"Timeout, server \S+ not responding|closed by remote host|Broken pipe|mux_client",
    "a session that lasts: the node or the network went away in the middle",
    "ping -c 3 {host}, then run the same command again",
)
UNKNOWN = kind("unknown", "", "a session on the node", "{ssh} -v true")
NOISE = re.compile(r"^(Warning: Permanently added|\*\* |debug\d: |@{10,}|\s*$)")


def ssh_problem(login: Login, what: str, stderr: str, opened: bool) -> Problem:
    """Return what an exit code of 255 means.

    `what` is what was being done; `opened` tells whether the session to the node had been opened
    before: an end without a word is then the session's death.
    """
    found = classify(stderr, opened)
    fix = found.fix.format(ssh=f"ssh {login}", host=login.host, login=login)
    said = found.cause(stderr, NOISE)
    seen = f"ssh failed: {found.name}, during {what}" + (f": {said}" if said else "")
    return Problem(f"{login.node} (ssh {login})", seen, found.wanted, fix)


def classify(stderr: str, opened: bool) -> Kind:
    """Return the kind of failure that ssh's own messages tell of."""
    if opened and DIED.text.search(stderr):
        return DIED
    return first_kind((*KINDS, DIED), stderr) or (DIED if opened else UNKNOWN)


def too_slow(login: Login, what: str, seconds: float) -> Problem:
    """Return what it means that a command did not end in time."""
    return Problem(
        f"{login.node} (ssh {login})",
        f"no end of `{what[:200]}` after {seconds:.0f} s",
        "an answer in time",
        f"look at the node: ssh {login} uptime",
    )


def interrupted(login: Login, what: str) -> Problem:
    """Return that a command was ended by this program."""
    where = f"{login.node} (ssh {login})"
    return Problem(where, f"interrupted before `{what[:200]}`", "its end", "run it again")


def not_here(program: str, error: OSError) -> Problem:
    """Return what it means that a program of this machine cannot be run."""
    package = {"ssh": "openssh-client"}.get(program, program)
    return Problem(
        "this machine",
        f"cannot run {program}: {error.strerror}",
        f"{program} of the system",
        f"sudo apt-get install {package}",
    )


def no_shell(login: Login, rc: int, text: str) -> Problem:
    """Return what it means that a login works and its shell runs nothing."""
    return Problem(
        f"{login.node} (ssh {login})",
        f"the login shell ended with {rc}: {text.strip()[-200:]}",
        "a login that can run commands",
        f"ssh {login} true",
    )
