"""A node as a bundle sees it, without a machine: what a probe found, and what Docker says."""

import json
from pathlib import Path
from typing import Any

from tetraspark.bundle.containers import NAMES
from tetraspark.bundle.node_sources import COMMANDS, FILES, PSTORE
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, OnLine, Result

CONTAINER = "tetraspark-two-r0"


def found(text: str) -> dict[str, Any]:
    """Return what the probe's program prints of a node whose every text holds `text`."""
    return {
        "home": "/root",
        "uid": 0,
        "time": 0.0,
        "files": {
            **{path.replace("~", "/root"): f"1.0 {text}\n" for path in FILES.values()},
            "/sys/class/infiniband/rocep1s0f0/ports/1/state": f"4: ACTIVE {text}\n",
        },
        "links": {},
        "sizes": {},
        "globs": {pattern: [] for pattern in PSTORE} | {PSTORE[0]: [f"/sys/fs/pstore/{text}"]},
        "space": {},
        "listeners": {},
        "commands": {
            **{name: said(f"first\n{text} of {name}\n") for name in COMMANDS},
            NAMES: said(f"{CONTAINER}\n"),
        },
    }


def said(stdout: str, rc: int = 0, stderr: str = "") -> dict[str, Any]:
    """Return how a command of a probe ended."""
    return {"rc": rc, "stdout": stdout, "stderr": stderr}


def inspected(text: str) -> str:
    """Return `docker inspect` of a rank."""
    env = [f"NCCL_DEBUG={text}", f"HF_TOKEN={text}", f"MY_OWN={text}", "PATH=/bin"]
    return json.dumps([{"Name": CONTAINER, "Config": {"Env": env, "Cmd": ["x", text]}}])


class Nodes:
    """A NodeRunner: `probes` is what each node's probe finds, None for one that is down."""

    def __init__(self, probes: dict[str, dict[str, Any] | None], text: str) -> None:
        self.probes = probes
        self.text = text
        self.asked: list[tuple[str, ...]] = []

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        probe = self.probes[node]
        if probe is None:
            raise RunError(Problem(node, f"ssh failed: timed out {self.text}", "an answer"))
        self.asked.append(command.argv)
        if command.argv[0] == "python3":
            return Result(0, json.dumps(probe), "")
        if command.argv[:2] == ("docker", "inspect"):
            return Result(0, inspected(self.text), "")
        assert command.argv[:2] == ("docker", "logs")
        receipt = json.dumps({"tetraspark": "engine", "rank": 0})
        out = f"2026-11-30T08:00:01Z {receipt}\n2026-11-30T08:00:03Z {self.text}\n"
        return Result(0, out, f"2026-11-30T08:00:02Z {self.text} on stderr\n")

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError
