"""What is looked at on the nodes of a fleet before anything is started: all that a doctor does."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tetraspark.doctor.baseline import NodeState
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.check import Check
from tetraspark.doctor.choice import means, require_known
from tetraspark.doctor.examine import judge
from tetraspark.doctor.paths import engram_folder
from tetraspark.doctor.report import Report, fails
from tetraspark.engram import sample
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts
from tetraspark.line.preflight import in_phase
from tetraspark.site.load import LoadedSite
from tetraspark.weights.each_node import on_each

IDS = (*(one.id for one in CATALOGUE if "fleet" in one.kinds and not one.burns), sample.ID)
"""The checks that a start makes."""
VOLUME_ID = "WEIGHTS.VOLUME"
DESPITE = "--despite"


@dataclass(frozen=True)
class Preflight:
    """What a start goes on with: failed checks that were named to be tolerated, `doubts` (warnings,
    and what could not be seen), and the states of the idle nodes.
    """

    tolerated: tuple[Check, ...]
    doubts: tuple[Check, ...]
    states: Mapping[str, NodeState]


def require_tolerable(despite: Collection[str]) -> None:
    """Raise UsageError for names that are neither a check of a start nor its beginning."""
    require_known(despite, IDS, DESPITE, "fleet")


def fleet_preflight(
    loaded: LoadedSite,
    runner: NodeRunner,
    found: Mapping[str, Facts | RunError],
    despite: Collection[str] = (),
    replacing: bool = False,
) -> Preflight:
    """Make the doctor's checks, and read samples of the Engram shards; no node is changed.

    `found` is what probes of `examine.start_wanted` found, `despite` are IDs of checks that may
    fail, or their beginnings. `replacing` is as in `judge`.
    Raises RunError with every other failure. A volume of NFS must be as planned in any case: Docker
    makes an empty one of a name that is not there, and mounts that.
    """
    report = judge(loaded, found, replacing)
    checks = (*report.checks, *_samples(loaded, runner, found, report))
    failed = [one for one in checks if fails(one)]
    weights = loaded.site.weights
    firm = (VOLUME_ID,) if weights and weights.mode == "nfs" else ()
    tolerated = [
        one for one in failed if one.id not in firm and any(means(name, one.id) for name in despite)
    ]
    refused = [one for one in failed if one not in tolerated]
    if refused:
        raise RunError(*(in_phase("preflight", one.problem) for one in refused))
    doubts = [one for one in checks if one.verdict != "ok" and not fails(one)]
    return Preflight(tuple(tolerated), tuple(doubts), report.states)


def _samples(
    loaded: LoadedSite,
    runner: NodeRunner,
    found: Mapping[str, Facts | RunError],
    report: Report,
) -> list[Check]:
    """Read rows of the Engram shards on each node whose manifests are there."""
    ranks = {node.name: rank for rank, node in enumerate(loaded.site.nodes)}
    nodes = [
        one.node
        for one in report.checks
        if (one.id, one.verdict) == ("ENGRAM.MANIFEST", "ok") and one.node is not None
    ]

    def one(node: str) -> list[Check]:
        rank = ranks[node]
        folder = engram_folder(loaded, rank)
        assert folder is not None, "a manifest was looked at in it"
        facts = found[node]
        assert isinstance(facts, Facts), "a manifest was read in it"
        return sample.verify_sample(runner.run, node, folder, rank, loaded.site.engine.tp, facts)

    checks: list[Check] = []
    for node, told in on_each(runner, nodes, one).items():
        if isinstance(told, RunError):
            seen, fix = told.problems[0].seen, told.problems[0].fix
            checks.append(Check(sample.ID, node, "unknown", seen, sample.WISH, fix))
        else:
            checks += told
    return checks
