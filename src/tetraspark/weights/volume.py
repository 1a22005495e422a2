"""The docker volume of a worker as it is, and whether it is as planned. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tetraspark.doctor.check import Check
from tetraspark.fleet.container import LINE
from tetraspark.fleet.docker_failure import classify
from tetraspark.fleet.facts import Said
from tetraspark.weights.mount import NfsVolume


@dataclass(frozen=True)
class DockerVolume:
    """What `docker volume inspect` says of a volume; `line` is the line that it was made for."""

    name: str
    driver: str
    options: Mapping[str, str]
    line: str | None


def inspect_words(name: str) -> tuple[str, ...]:
    """Return the command that describes a volume."""
    return ("docker", "volume", "inspect", name)


def parse_volume(said: Said) -> DockerVolume | None:
    """Return the volume, or None when there is none. Raises ValueError when it cannot be told."""
    if said.rc and "no such volume" in said.stderr.lower():
        return None
    if said.rc:
        raise ValueError((said.stderr.strip().splitlines() or [f"exit code {said.rc}"])[-1])
    try:
        (found,) = json.loads(said.stdout)
        labels = found.get("Labels") or {}
        options = dict((found.get("Options") or {}).items())
        return DockerVolume(found["Name"], found["Driver"], options, labels.get(LINE))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"docker volume inspect said something else: {error}") from error


def volume_check(node: str, planned: NfsVolume | None, name: str, said: Said, mode: str) -> Check:
    """Return whether a node's volume is as planned; without a plan there should be none."""
    wanted = f"a volume {name} of {planned.options}" if planned else f"no volume {name} of NFS"
    try:
        found = parse_volume(said)
    except ValueError as error:
        fix = classify(str(error)).fix.format(ssh=f"on {node}:", user="$USER", base="")
        return Check("WEIGHTS.VOLUME", node, "unknown", str(error), wanted, fix)
    if planned is None:
        return _leftover(node, name, found, wanted, mode)
    if found is None:
        fix = "tetraspark weights share --apply"
        return Check("WEIGHTS.VOLUME", node, "failed", f"no volume {name}", wanted, fix)
    seen = f"volume {name}: {found.driver}, {dict(found.options)}"
    if found.driver == "local" and dict(found.options) == planned.options:
        return Check("WEIGHTS.VOLUME", node, "ok", seen, wanted)
    fix = f"on {node}: docker volume rm {name}; then: tetraspark weights share --apply"
    return Check("WEIGHTS.VOLUME", node, "failed", seen, wanted, fix)


def _leftover(node: str, name: str, found: DockerVolume | None, wanted: str, mode: str) -> Check:
    """A volume that is not mounted is in nobody's way, but is what an older start would use."""
    if found is None or not found.options.get("type", "").startswith("nfs"):
        return Check("WEIGHTS.VOLUME", node, "ok", f"no volume {name} of NFS", wanted)
    whose = f"made by tetraspark for line {found.line}" if found.line else "not made by tetraspark"
    seen = f'volume {name} of NFS is left over, with mode "{mode}"; {whose}'
    fix = f"on {node}: docker volume rm {name}"
    if found.line:
        fix = f"tetraspark weights share --remove, or {fix}"
    return Check("WEIGHTS.VOLUME", node, "failed", seen, wanted, fix)
