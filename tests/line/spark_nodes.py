"""Four Sparks of text, as a start asks them: the doctor's, which also give memory back."""

import json
from dataclasses import dataclass, field

from tests.doctor.stand import Stand
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.meminfo import GIB

NVRM = "NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)\n"


@dataclass
class Nodes(Stand):
    """The four as a start asks them; `evicted` and `sampled` are what programs print there."""

    dmesg: str = ""
    evicted: dict[str, str] = field(default_factory=dict)
    sampled: dict[str, str] = field(default_factory=dict)

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        if command.argv == ("dmesg",):
            return Result(0, self.dmesg, "")
        if command.argv[0] == "cat":
            return Result(0, self.facts(node).files[command.argv[1]], "")
        text = command.stdin.decode() if isinstance(command.stdin, bytes) else ""
        if '"mode": "sample"' in text:
            return Result(0, self.sampled.get(node, '{"event": "end"}\n'), "")
        if "fadvise" in text:
            return Result(0, self.evicted.get(node, given_back(node)), "")
        return super().run(node, command, on_line)


def given_back(node: str, **errors: str) -> str:
    memory = [{"MemFree": GIB}, {"MemFree": 100 * GIB}]
    found = {"folder": "/m", "exists": True, "files": 2, "bytes": GIB, "errors": errors}
    return json.dumps({**found, "before": memory[0], "after": memory[1]}) + "\n"
