"""The folder of a served line on a node: the API key, and what the container shares with it."""

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.login import Login

KEY = "api-key"
SHARED = "run"

# A folder is of one run; the next one finds nothing in it. Nothing is followed that somebody put
# in its place, and nobody else can enter it.
PREPARE = """
set -eu
umask 077
if [ -L "$1" ]; then echo "a symbolic link: $1" >&2; exit 1; fi
rm -rf -- "$1"
mkdir -p "$1/run"
printf %s "$2" > "$1/of"
if [ "$3" = key ]; then cat > "$1/api-key"; fi
"""
REMOVE = """
if [ ! -e "$1" ] || { [ -n "$2" ] && [ "$(cat "$1/of")" != "$2" ]; }; then exit 0; fi
rm -rf -- "$1"
"""


def node_folder(line: str) -> str:
    """Return the folder of a line on a node, below the login's home."""
    return f".local/state/tetraspark/{line}/node"


def shared_folder(line: str) -> str:
    """Return the part of it that the container may write to."""
    return f"{node_folder(line)}/{SHARED}"


def key_file(line: str) -> str:
    """Return the file of it with the API key."""
    return f"{node_folder(line)}/{KEY}"


def prepare(runner: NodeRunner, login: Login, line: str, run: str, key: str | None) -> None:
    """Make the folder anew for a run, with the key where there is one. Raises RunError."""
    words = (node_folder(line), run, "key" if key is not None else "")
    stdin = None if key is None else f"{key}\n".encode()
    _run(runner, login, PREPARE, words, stdin)


def remove(runner: NodeRunner, login: Login, line: str, run: str | None) -> None:
    """Remove the folder, if it is of this run; without one, whosever it is. Raises RunError."""
    _run(runner, login, REMOVE, (node_folder(line), run or ""), None)


def _run(
    runner: NodeRunner, login: Login, script: str, words: tuple[str, ...], stdin: bytes | None
) -> None:
    done = runner.run(login.node, NodeCommand(("sh", "-c", script, "folder", *words), stdin))
    if done.rc:
        seen = (done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1][:300]
        wanted = "a folder of our own on the node"
        fix = f"ssh {login} 'df -h ~; ls -la {words[0]}'"
        raise RunError(Problem(f"{login.node}:{words[0]}", seen, wanted, fix))
