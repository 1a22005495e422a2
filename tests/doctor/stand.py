"""Four Sparks as a probe would find them, all well; tests break them. Nothing was recorded on one.

The runner answers as the program on a node does: only what the request asks for is there.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.engram.test_shard import manifest
from tests.fabric.sparks import Sparks, switched
from tetraspark.doctor.check import Check
from tetraspark.doctor.examine import examine
from tetraspark.doctor.report import Report
from tetraspark.engram.shard import shard_name
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts, Said, Space
from tetraspark.fleet.login import logins
from tetraspark.fleet.ssh_failure import ssh_problem
from tetraspark.site.load import LoadedSite, load_site

NAMES = ("spark1", "spark2", "spark3", "spark4")
GIB = 1 << 30
BASE = "lmsysorg/sglang:dev@sha256:" + "ab" * 32
SITE = f"""\
name = "four"
kind = "fleet"
nodes = [
    {{ name = "spark1", host = "192.168.1.11" }},
    {{ name = "spark2", host = "192.168.1.12" }},
    {{ name = "spark3", host = "192.168.1.13" }},
    {{ name = "spark4", host = "192.168.1.14", user = "bob" }},
]
[model]
path = "~/models/v4"
served_name = "v4"
[model.canary]
prompt = "What is 19 + 23?"
[engine]
tp = 4
ep = 4
mem_fraction = 0.8
[api]
port = 8888
[image]
recipe = "canary-roce"
tag = "four:1"
base = "{BASE}"
[weights]
mode = "local"
[fabric]
topology = "switch"
devices = ["rocep1s0f0", "roceP2p1s0f0"]
[engram]
dir = "~/engram"
[env]
SGLANG_RUST_BUILD_MODE = "never"
"""
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
MEMINFO = {
    "MemTotal": 127599616,
    "MemFree": 116000000,
    "MemAvailable": 118000000,
    "Buffers": 100000,
    "Cached": 2000000,
    "CmaTotal": 65536,
}
BUDDY = "Node 0, zone   Normal  90211  40022  1200  310  40  8  1  0  0  0  27000\n"
GPUS = "index, name, driver_version, memory.total [MiB], memory.free [MiB]\n"
GPU_PROCESSES = "pid, process_name, used_gpu_memory [MiB]\n"


def site(folder: Path, *changes: tuple[str, str]) -> LoadedSite:
    """Return the site of the four, with pieces of its text replaced."""
    text = SITE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "site.toml").write_text(text)
    return load_site(folder / "site.toml")


@dataclass
class Machine:
    """What a node has beside its fabric; tests change it."""

    node: str
    home: str
    files: dict[str, str]
    links: dict[str, str]
    sizes: dict[str, int]
    space: dict[str, Space]
    commands: dict[str, Said]
    declared: dict[str, int]
    listeners: dict[int, str] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=lambda: dict(MEMINFO))
    image: dict[str, Any] = field(default_factory=dict)
    container: dict[str, Any] | None = None
    time: float = 1000.0
    burn: Result = field(default_factory=lambda: burned(61.2, "2200", "72.1"))
    error: RunError | None = None
    python: bool = True

    def say(self, name: str, stdout: str = "", rc: int = 0, stderr: str = "") -> None:
        """Change what a command says."""
        self.commands[name] = Said(rc, stdout, stderr)

    def inform(self, **changes: object) -> None:
        """Change what `docker info` says."""
        found = json.loads(self.commands["docker info"].stdout)
        self.say("docker info", json.dumps(found | changes))

    def objects(self) -> Said:
        """Say what `docker inspect` says of the names of the line."""
        there = [one for one in (self.image, base(), self.container) if one]
        lines = "".join(json.dumps(one) + "\n" for one in there)
        return Said(1, lines, "Error: No such object: tetraspark-four-r0\n")


def burned(tflops: float, mhz: str, watts: str) -> Result:
    return Result(0, json.dumps({"tflops": tflops, "clocks": [mhz, watts]}) + "\n", "")


def base() -> dict[str, Any]:
    return {
        "Id": "sha256:" + "0" * 64,
        "RepoTags": [],
        "RepoDigests": ["lmsysorg/sglang@" + BASE.split("@")[1]],
        "Os": "linux",
        "Architecture": "arm64",
        "Size": 20 * GIB,
        "Config": {"Env": ["PATH=/usr/bin"]},
        "RootFS": {"Type": "layers", "Layers": ["sha256:1", "sha256:2"]},
    }


def image(node: str) -> dict[str, Any]:
    """The image as built on a node: its ID and own layers are as no other's."""
    labels = {"tetraspark.recipe": "canary-roce", "tetraspark.base": BASE}
    return base() | {
        "Id": f"sha256:{node[-1] * 64}",
        "RepoTags": ["four:1"],
        "RepoDigests": [],
        "Size": 24 * GIB,
        "Config": {"Env": ["PATH=/usr/bin"], "Labels": labels | {"tetraspark.revision": "abc"}},
        "RootFS": {"Type": "layers", "Layers": ["sha256:1", "sha256:2", f"sha256:{node}"]},
    }


def machine(node: str) -> Machine:
    """A Spark that is well."""
    rank = NAMES.index(node)
    home = "/home/bob" if node == "spark4" else "/home/alice"
    model, engram = f"{home}/models/v4", f"{home}/engram"
    index = {"metadata": {}, "weight_map": {f"w{i}": name for i, name in enumerate(SHARDS)}}
    files = {
        "/proc/buddyinfo": BUDDY,
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz quiet\n",
        "/proc/self/limits": "Max locked memory         unlimited  unlimited  bytes\n",
        "/sys/class/dmi/id/bios_version": "5.36_0ACUM018\n",
        f"{model}/config.json": '{"architectures": ["DeepseekV4ForCausalLM"]}',
        f"{model}/model.safetensors.index.json": json.dumps(index),
        f"{model}/tokenizer_config.json": '{"tokenizer_class": "PreTrainedTokenizerFast"}',
    }
    sizes = {f"{model}/{name}": 50 * GIB for name in SHARDS}
    declared = dict(sizes)
    sizes |= {path: len(text) for path, text in files.items() if path.startswith(model)}
    sizes |= {f"{model}/tokenizer.json": 10, f"{model}/chat_template.jinja": 10}
    for layer in (1, 14):
        name, one = shard_name(layer, rank, 4), manifest(layer, rank)
        files[f"{engram}/{name}.json"] = json.dumps(one)
        sizes |= {f"{engram}/{name}.json": 700, f"{engram}/{name}.bin": one["bytes"]}
    links = {path: path for path in (model, *(p for p in sizes if p.startswith(model)))}
    links |= {f"/dev/infiniband/{name}": f"/dev/infiniband/{name}" for name in ("uverbs0", "umad0")}
    disk = Space("/", 4000 * GIB, 900 * GIB)
    space = {"~": disk, "/var/lib/docker": disk, "~/engram": replace(disk, path=engram)}
    space["~/models/v4"] = replace(disk, path=model)
    said = {
        "kernel": "6.17.0-1031-nvidia\n",
        "machine": "aarch64\n",
        "gpus": f"{GPUS}0, NVIDIA GB10, 580.159.03, [N/A], [N/A]\n",
        "gpu processes": GPU_PROCESSES,
        "docker info": json.dumps(
            {
                "ID": node,
                "ServerVersion": "29.1.3",
                "Runtimes": {"runc": {}, "nvidia": {}},
                "SecurityOptions": ["name=apparmor"],
                "DockerRootDir": "/var/lib/docker",
            }
        ),
        "docker ps": "",
        "dmesg": "[    1.0] Booting Linux\n",
    }
    commands = {name: Said(0, text, "") for name, text in said.items()}
    commands["journal"] = Said(1, "-- No entries --\n", "")
    commands["docker volume"] = Said(1, "[]", "Error: No such volume: tetraspark-four-weights")
    for other in NAMES:
        peer = f"192.168.1.1{other[-1]}"
        route = [{"dst": peer, "dev": "enP7s7", "prefsrc": f"192.168.1.1{node[-1]}"}]
        commands[f"route to {peer}"] = Said(0, json.dumps(route), "")
    found = Machine(node, home, files, links, sizes, space, commands, declared)
    found.image = image(node)
    return found


@dataclass
class Stand:
    """The four; also the runner that reaches them.

    `ran` are commands other than probes, `probed` the nodes of probes.
    """

    loaded: LoadedSite
    fabric: Sparks = field(default_factory=switched)
    machines: dict[str, Machine] = field(
        default_factory=lambda: {node: machine(node) for node in NAMES}
    )
    ran: list[tuple[str, ...]] = field(default_factory=list)
    probed: list[str] = field(default_factory=list)

    def __getitem__(self, number: int) -> Machine:
        """Return Spark 1 to 4."""
        return self.machines[f"spark{number}"]

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.machines.values())

    def refuse(self, number: int, stderr: str) -> None:
        """Make ssh to a node fail with a message."""
        login = logins(self.loaded)[number - 1]
        self[number].error = RunError(ssh_problem(login, "login", stderr, opened=False))

    def facts(self, node: str) -> Facts:
        """Return all that there is on a node."""
        one, found = self.machines[node], self.fabric.facts(node)
        memory = "".join(f"{name}: {kib} kB\n" for name, kib in one.memory.items())
        return replace(
            found,
            home=one.home,
            time=one.time,
            files={**found.files, "/proc/meminfo": memory, **one.files},
            links={**found.links, **one.links},
            sizes=one.sizes,
            space=one.space,
            listeners=one.listeners,
            commands={**found.commands, "docker objects": one.objects(), **one.commands},
            declared=one.declared,
        )

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        one = self.machines[node]
        if one.error is not None:
            raise one.error
        if command.argv[0] == "docker":
            self.ran.append(command.argv)
            return one.burn
        if not one.python:
            return Result(127, "", "bash: exec: python3: not found\n")
        assert isinstance(command.stdin, bytes)
        line = re.search(r"(?m)^REQUEST = (.*)$", command.stdin.decode())
        assert line is not None
        asked = json.loads(ast.literal_eval(line[1]))
        self.probed.append(node)
        return Result(0, json.dumps(answered(self.facts(node), asked)), "")

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise AssertionError("a doctor copies nothing")

    def interrupt(self) -> None:
        raise AssertionError("a doctor is not interrupted here")

    def examine(self, *only: str, nodes: tuple[str, ...] = (), burn: bool = False) -> Report:
        return examine(self.loaded, self, only, nodes, burn)

    def check(self, id: str, node: str | None = None) -> Check:
        """Return the one check of an ID on a node that is worst."""
        order = ("failed", "unknown", "warning", "ok")
        found = [one for one in self.examine(id).checks if (one.id, one.node) == (id, node)]
        return min(found, key=lambda one: order.index(one.verdict))


def answered(facts: Facts, asked: dict[str, Any]) -> dict[str, Any]:
    """Return of all facts what a request asks for, as the program on the node prints it."""

    def of(paths: dict[str, Any] | Any, globs: list[str]) -> dict[str, Any]:
        patterns = [facts.expand(one) for one in globs]
        return {p: v for p, v in paths.items() if any(fnmatchcase(p, one) for one in patterns)}

    every = (*facts.sizes, *facts.files)
    globs = {
        one: sorted({path for path in every if fnmatchcase(path, facts.expand(one))})
        for one in asked["sizes"]
    }
    return {
        "home": facts.home,
        "uid": facts.uid,
        "ssh": facts.ssh,
        "time": facts.time,
        "files": of(facts.files, asked["files"]),
        "links": of(facts.links, asked["links"]),
        "sizes": of(facts.sizes, asked["sizes"]),
        "globs": globs,
        "declared": of(facts.declared, asked["shards"]),
        "space": {one: vars(facts.space[one]) for one in asked["space"]},
        "listeners": {p: who for p, who in facts.listeners.items() if p in asked["ports"]},
        "commands": {n: vars(facts.commands[n]) for n in asked["commands"] if n in facts.commands},
    }
