"""The folder of ours on a node that a build context is copied to, and nothing else lies in."""

from pathlib import Path

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner

HOME = ".cache/tetraspark"
"""Relative to the login's home folder, where ssh and rsync begin."""
MARKER = ".tetraspark-staging"
COPY_SECONDS = 3600.0

# What is in the context's folder and not in the context will be deleted, so the folder must be
# one that was made here: the marker says so, and no link may lead out of it.
PREPARE = f"""
set -eu
for part in "$1" "$1/context"; do
    if [ -L "$part" ]; then echo "a symbolic link: $part" >&2; exit 3; fi
done
if [ -e "$1" ] && [ ! -d "$1" ]; then echo "not a folder" >&2; exit 3; fi
if [ -d "$1" ] && [ ! -f "$1/{MARKER}" ] && [ -n "$(ls -A "$1")" ]; then
    echo "a folder with something in it, and no {MARKER}" >&2; exit 3
fi
mkdir -p "$1/context"
[ -f "$1/{MARKER}" ] || : > "$1/{MARKER}"
"""
NOT_OURS = 3


def context_path(name: str) -> str:
    """Return where the context of the staging folder `name` is, below the login's home folder."""
    return f"{HOME}/{name}/context"


def prepare(name: str) -> tuple[str, ...]:
    """Return the command that makes the staging folder `name`, or refuses what is there."""
    return ("sh", "-c", PREPARE, "prepare", f"{HOME}/{name}")


def stage(runner: NodeRunner, node: str, folder: Path, name: str) -> str:
    """Make the staging folder `name` of a node equal to a local folder; return its path there.

    Raises RunError when the path there is not a staging folder of ours, or the copy failed.
    """
    home = f"{HOME}/{name}"
    made = runner.run(node, NodeCommand(prepare(name)))
    if made.rc == NOT_OURS:
        wanted = "a staging folder that tetraspark made: what is not in the context is deleted"
        fix = f"look at it on {node}, and move it away: mv {home} {home}.old"
        raise RunError(Problem(f"{node}:{home}", made.stderr.strip(), wanted, fix))
    if made.rc:
        fix = f"on {node}: mkdir -p {home}; df -h ~"
        raise RunError(Problem(f"{node}:{home}", made.stderr.strip(), "a folder to write to", fix))
    target = context_path(name)
    runner.copy(node, folder, target, COPY_SECONDS)
    return target
