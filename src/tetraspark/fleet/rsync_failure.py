"""What rsync's exit codes mean (rsync(1), EXIT VALUES). Pure: text in, a problem out."""

import re

from tetraspark.errors import Problem
from tetraspark.fleet.login import Login
from tetraspark.fleet.plain import plain

MEANINGS = {
    1: "syntax or usage",
    2: "versions of the protocol that do not fit",
    3: "files could not be selected",
    4: "an action that one side does not support",
    5: "the transfer could not be started",
    10: "socket input or output",
    11: "file input or output",
    12: "the stream between the two sides broke",
    13: "diagnostics",
    14: "interprocess communication",
    20: "interrupted",
    21: "waitpid",
    22: "out of memory",
    23: "some files were not transferred",
    24: "files vanished from the source",
    25: "too many deletions",
    30: "time-out of the transfer",
    35: "time-out of the connection",
}
NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
READ_ONLY = re.compile(r"Read-only file system")
DENIED = re.compile(r"Permission denied")
NOT_THERE = re.compile(r"rsync: (command )?not found|exec: rsync: not found|rsync: No such file")
NOISE = re.compile(r"^(rsync error|rsync: connection unexpectedly closed|\s*$)")


def rsync_problem(login: Login, rc: int, stderr: str, target: str) -> Problem:
    """Return what a failed copy to the folder `target` of a node means."""
    meaning = MEANINGS.get(rc, "unexplained")
    wanted, fix = _advice(login, rc, stderr, target)
    seen = f"rsync failed with {rc} ({meaning}): {_cause(stderr)}"
    return Problem(f"{login.node}:{target}", seen, wanted, fix)


def _advice(login: Login, rc: int, stderr: str, target: str) -> tuple[str, str]:
    ssh = f"ssh {login}"
    if NO_SPACE.search(stderr):
        return "room on the node's disk", f"{ssh} df -h . /tmp; then: {ssh} docker system prune"
    if READ_ONLY.search(stderr):
        return "a file system that can be written", f"{ssh} findmnt --target {target}"
    if NOT_THERE.search(stderr) or rc == 127:
        return "rsync on the node", f"{ssh} sudo apt-get install rsync"
    if DENIED.search(stderr):
        return "a folder that the login can write", f"{ssh} ls -ld {target}"
    if rc == 12:
        return "a login shell that prints nothing of its own", f"{ssh} true | od -c"
    if rc in (10, 30, 35):
        return "a node that answers to the end", f"{ssh} uptime; then run the command again"
    if rc == 24:
        return "a source that stays as it is", "run the command again"
    return "the whole folder on the node", f"{ssh} ls -la {target}; then run the command again"


def _cause(stderr: str) -> str:
    """Return the first line that names a cause, or else rsync's last word."""
    lines = [line.strip() for line in plain(stderr).split("\n") if line.strip()]
    causes = [line for line in lines if not NOISE.match(line)]
    return (causes or lines[-1:] or ["no message"])[0][:300]
