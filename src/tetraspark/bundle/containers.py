"""The containers of a line on a node: how Docker describes them, and what they printed."""

import json
import re
from typing import Any

from tetraspark.bundle.redaction import HIDDEN
from tetraspark.bundle.source import Missing, Source, why
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner, Result
from tetraspark.fleet.facts import Facts
from tetraspark.site.secret import names_secret

NAMES = "containers"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Docker's grammar of a container's name: nothing else becomes a path of the bundle."""
LOG_LINES = "4000"
SECONDS = 30.0
SHOWN = (
    "B12X_", "CUDA_", "DSV41_", "FLASHINFER_", "GLOO_", "HF_HUB_OFFLINE", "LD_", "NCCL_",
    "NVIDIA_", "OFFLOAD_MODE", "OMP_", "PATH", "PYTHON", "PYTORCH_", "SGLANG_", "TETRASPARK_",
    "TORCH", "TRITON_",
)  # fmt: skip
"""How a variable's name begins whose value is shown: of others, only the name is."""


def list_command(line: str) -> tuple[str, ...]:
    """Return the command that lists a line's containers, whether they run or not."""
    names = ("docker", "ps", "--all", "--no-trunc", "--format", "{{.Names}}")
    return (*names, "--filter", f"name=^tetraspark-{line}-")


def container_sources(runner: NodeRunner, facts: Facts) -> tuple[list[Source], list[Missing]]:
    """Ask Docker about the containers that a look at the node found."""
    folder = f"nodes/{facts.node}/containers"
    listed = facts.commands[NAMES]
    if listed.rc:
        return [], [Missing(folder, why(listed))]
    sources: list[Source] = []
    missing: list[Missing] = []
    for name in sorted(listed.stdout.split()):
        if not NAME.fullmatch(name):
            missing.append(Missing(folder, f"a container with an odd name: {name!r}"))
            continue
        for file, argv in (
            ("inspect.json", ("docker", "inspect", name)),
            ("log.txt", ("docker", "logs", "--timestamps", "--tail", LOG_LINES, name)),
        ):
            place = f"{folder}/{name}/{file}"
            try:
                result = runner.run(facts.node, NodeCommand(argv, timeout=SECONDS))
                sources.append(Source(place, _text(result, file)))
            except (RunError, ValueError) as error:
                missing.append(Missing(place, str(error)))
    return sources, missing


def _text(result: Result, file: str) -> str:
    """Return what Docker said. Raises ValueError when that is no answer."""
    if result.rc:
        raise ValueError(result.stderr.strip()[-300:] or f"docker ended with {result.rc}")
    if file == "inspect.json":
        return _inspected(json.loads(result.stdout))
    lines = (result.stdout + result.stderr).splitlines(keepends=True)
    # Two streams, each line with its time in front.
    return "".join(sorted(lines, key=lambda line: line.split(" ", 1)[0]))


def _inspected(found: Any) -> str:
    """Return `docker inspect` with the values of its variables hidden, but for known names."""
    for one in found if isinstance(found, list) else ():
        config = one.get("Config") if isinstance(one, dict) else None
        if isinstance(config, dict) and isinstance(config.get("Env"), list):
            config["Env"] = [_variable(str(pair)) for pair in config["Env"]]
    return json.dumps(found, indent=1) + "\n"


def _variable(pair: str) -> str:
    name, equals, value = pair.partition("=")
    shown = name.startswith(SHOWN) and not names_secret(name)
    return f"{name}{equals}{value if shown else HIDDEN}"
