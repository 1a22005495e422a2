"""The sampled rows of a node's shards, read and hashed on it: what a start of a line can afford."""

from tetraspark.doctor.check import Check
from tetraspark.engram.plan import PYTHON
from tetraspark.engram.program import script
from tetraspark.engram.request import read_event
from tetraspark.engram.run import ASK_SECONDS, Run, last_line
from tetraspark.engram.shard import manifests, shard_name
from tetraspark.fleet.command import NodeCommand
from tetraspark.fleet.facts import Facts

ID = "ENGRAM.SAMPLE"
WISH = "the first page and the sampled rows as they were packed"


def verify_sample(
    run: Run, node: str, folder: str, rank: int, tp: int, facts: Facts
) -> list[Check]:
    """Check the bytes of a rank's shards: 64 rows of each and its first page, a few reads.

    For shards whose manifests `shard_checks` accepts; none gives no check. What cannot be read
    is "unknown", never "ok".
    """
    names = [shard_name(one.layer, rank, tp) for one in manifests(folder, rank, tp, facts)]
    if not names:
        return []
    request = {"mode": "sample", "folder": facts.expand(folder), "names": names}
    done = run(node, NodeCommand(PYTHON, script(request), ASK_SECONDS), None)
    events = [event for line in done.stdout.splitlines() if (event := read_event(line))]
    fix = f"tetraspark pack --verify --node {node}"
    if not events or events[-1].event != "end":
        said = [str(event.problem(node)) for event in events if event.event == "problem"]
        return [Check(ID, node, "unknown", (said or [last_line(done)])[0], WISH, fix)]
    faults = [
        f"{event.words['shard']}: {fault}"
        for event in events
        if event.event == "verified"
        for fault in event.words["faults"]
    ]
    if faults:
        anew = f"tetraspark pack --node {node} --replace"
        return [Check(ID, node, "failed", "; ".join(faults), WISH, anew)]
    return [Check(ID, node, "ok", ", ".join(names), WISH)]
