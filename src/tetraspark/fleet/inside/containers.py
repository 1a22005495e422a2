"""Look at the containers of a line on a node: their state, processes, logs; print it as JSON.

Runs on the node with `python3 -I -`, from stdin, so it needs the standard library alone and
imports nothing of the package. REQUEST stands for a JSON object and is put in by the sender. It
changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REQUEST = "{}"
SECONDS = 20.0
MOST_BYTES = 8 << 20
LAST_LINES = 5000


def docker(*argv: str) -> str:
    """Run a docker command that only reads; raises RuntimeError with its words."""
    try:
        done = subprocess.run(
            ["docker", *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except FileNotFoundError:
        raise RuntimeError("docker: command not found") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"docker {argv[0]}: no end after {SECONDS:g} s") from None
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "replace")


def containers(filters: list[str]) -> list[dict[str, Any]]:
    """Return what Docker says of the containers with all these labels, in any state."""
    words = [word for one in filters for word in ("--filter", f"label={one}")]
    ids = docker("ps", "--all", "--quiet", "--no-trunc", *words).split()
    found = []
    for one in ids:
        # One that is being removed is not there any more: that is an answer, and no failure.
        with contextlib.suppress(RuntimeError):
            found += json.loads(docker("inspect", one))
    kept = ("Id", "Image", "Name", "RestartCount", "State")
    return [{**{key: one[key] for key in kept}, "Config": labels(one)} for one in found]


def labels(container: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a container's settings that is wanted."""
    return {"Labels": container["Config"]["Labels"]}


def processes(ids: list[str]) -> dict[str, list[list[Any]]]:
    """Return [pid, state letter] of each process of each container; pids as it counts them."""
    found: dict[str, list[list[Any]]] = {one: [] for one in ids}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, KeyError, ValueError, StopIteration):
            group = (folder / "cgroup").read_text()
            owner = next(one for one in ids if one in group)
            lines = (folder / "status").read_text().splitlines()
            fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            found[owner].append([int(fields["NSpid"].split()[-1]), fields["State"][0]])
    return found


def log(container: str, since: str) -> dict[str, Any]:
    """Return what a container has printed since a time, both streams in the order of writing.

    Of more than 8 MiB the end alone is returned, and `cut` says so.
    """
    argv = ["docker", "logs", "--timestamps", *(["--since", since] if since else [])]
    text, rc = reading([*argv, container])
    cut = len(text) > MOST_BYTES
    if cut:
        text, rc = reading([*argv, "--tail", str(LAST_LINES), container])
    return {"text": text[-MOST_BYTES:].decode("utf-8", "replace"), "cut": cut, "rc": rc}


def reading(argv: list[str]) -> tuple[bytes, int]:
    """Return what a program prints, until it is more than is wanted, and its exit code."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        text = process.stdout.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            process.kill()
    return text, process.returncode


def progress(folder: str) -> dict[str, str]:
    """Return the files in which communicators say what they do, by name."""
    found = {}
    for path in sorted(Path(folder).glob("rank*.collectives.json")):
        with contextlib.suppress(OSError):
            found[path.name] = path.read_text("utf-8", "replace")
    return found


def meminfo() -> str:
    """Return /proc/meminfo, or "" where it cannot be read."""
    with contextlib.suppress(OSError):
        return Path("/proc/meminfo").read_text()
    return ""


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Return all of it; `logs` of a request has, by run/rank, since when a log is wanted."""
    found = containers(request["labels"])
    alive = [one["Id"] for one in found if one["State"]["Pid"]]
    keys = {one["Id"]: "/".join(name(one, key) for key in request["keys"]) for one in found}
    since = request["logs"]
    return {
        "containers": found,
        "processes": processes(alive),
        "logs": {key: log(one, since[key]) for one, key in keys.items() if key in since},
        "progress": progress(request["folder"]),
        "meminfo": meminfo(),
    }


def name(container: dict[str, Any], label: str) -> str:
    """Return a label of a container, or ""."""
    return str((container["Config"]["Labels"] or {}).get(label, ""))


def main() -> None:
    """Look and print; a failure of Docker is printed as its words."""
    begun = time.time()
    try:
        found = look(json.loads(REQUEST))
    except RuntimeError as error:
        found = {"failed": str(error)}
    json.dump({**found, "begun": begun, "ended": time.time()}, sys.stdout)


if __name__ == "__main__":
    main()
