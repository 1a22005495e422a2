"""Docker of a node: whether this login may use it, what it is, what it can give a container."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tetraspark.doctor.check import Verdict
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fabric.inventory_json import parsed, table, tables, word
from tetraspark.fleet.docker_failure import docker_problem
from tetraspark.fleet.facts import Wanted
from tetraspark.fleet.login import Login

INFO = Wanted(commands={"docker info": ("docker", "info", "--format", "{{json .}}")})
OLDEST = (20, 10)
"""The oldest Docker this project was tried with."""
LIMITS = "/proc/self/limits"
LIMIT = Wanted(files=(LIMITS,))


def texts(value: Any) -> list[str]:
    """Return the texts of a JSON list; empty for anything else."""
    return [word(one) for one in value if word(one)] if isinstance(value, list) else []


def info(view: NodeView) -> Mapping[str, Any] | None:
    """Return what `docker info` says of the daemon, or None where it could not be asked."""
    said = view.said("docker info")
    found = table(parsed(said.stdout))
    good = said.rc == 0 and not found.get("ServerErrors")
    return found if good and isinstance(found.get("ServerVersion"), str) else None


def not_asked(view: NodeView, wanted: str) -> Finding:
    """Return that something is unknown because Docker could not be asked."""
    fix = f"first what DOCKER.DAEMON says of {view.node}"
    return Finding("unknown", "Docker could not be asked", wanted, fix)


def daemon(view: NodeView) -> Iterator[Finding]:
    """Judge whether this login can use a Docker daemon."""
    wanted, found = "a Docker daemon that this login may use", info(view)
    if found is not None:
        yield Finding("ok", f"Docker {found.get('ServerVersion', '')}", wanted)
        return
    said = view.said("docker info")
    if said.rc == 127:
        fix = view.shell("sudo apt-get install docker.io && sudo usermod -aG docker $USER")
        yield Finding("failed", said.stderr or "no docker command", wanted, fix)
        return
    text = "\n".join(texts(table(parsed(said.stdout)).get("ServerErrors")))
    problem = docker_problem(_login(view), "docker info", text or said.stderr or said.stdout)
    verdict: Verdict = "unknown" if said.rc == 124 else "failed"
    yield Finding(verdict, problem.seen, wanted, problem.fix)


def _login(view: NodeView) -> Login:
    return view.login or Login(view.node, view.node)


def version(view: NodeView) -> Iterator[Finding]:
    """Judge the daemon's version."""
    wanted, found = f"Docker {'.'.join(map(str, OLDEST))} or later", info(view)
    if found is None:
        yield not_asked(view, wanted)
        return
    text = str(found.get("ServerVersion", ""))
    numbers = re.match(r"(\d+)\.(\d+)", text)
    fix = view.shell("sudo apt-get update && sudo apt-get install docker.io")
    if numbers is None:
        yield Finding("unknown", f"version {text!r}", wanted, view.shell("docker version"))
    elif (int(numbers[1]), int(numbers[2])) < OLDEST:
        yield Finding("failed", text, wanted, fix)
    else:
        yield Finding("ok", text, wanted)


def gpu_runtime(view: NodeView) -> Iterator[Finding]:
    """Judge whether a container can be given the GPU."""
    wanted, found = "NVIDIA's container runtime, or a CDI device of the GPU", info(view)
    if found is None:
        yield not_asked(view, wanted)
        return
    runtimes = list(table(found.get("Runtimes")))
    devices = [word(one.get("ID")) for one in tables(found.get("DiscoveredDevices"))]
    gpus = [one for one in devices if one.startswith("nvidia.com/gpu")]
    if "nvidia" in runtimes or gpus:
        seen = ", ".join(runtimes) + (f"; CDI {gpus[0]}" if gpus else "")
        yield Finding("ok", f"runtimes {seen}", wanted)
    else:
        fix = view.shell(
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
        )
        yield Finding("failed", f"runtimes {', '.join(runtimes) or 'none'}", wanted, fix)


def memlock(view: NodeView) -> Iterator[Finding]:
    """Judge whether containers can lock memory, which RDMA needs: a rootless daemon cannot."""
    wanted, found = "a daemon of root's, which can give containers `memlock=-1`", info(view)
    if found is None:
        yield not_asked(view, wanted)
        return
    own = re.search(r"(?m)^Max locked memory +(\S+)", view.facts.files.get(LIMITS, ""))
    limit = f"; this login's own limit is {own[1]}" if own else ""
    if any("rootless" in one for one in texts(found.get("SecurityOptions"))):
        fix = "use the system's daemon: docker context use default"
        yield Finding("failed", f"a rootless daemon{limit}", wanted, view.shell(fix))
    else:
        yield Finding("ok", f"root's daemon{limit}", wanted)
