"""Proof by counters that every rail carries: what moved on each device in a window of time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.prove_errors import ERRORS
from tetraspark.fabric.rail import Rail, amount, rails_of
from tetraspark.fabric.transit import Transit, transits_of


@dataclass(frozen=True)
class Proof:
    """What a window shows; `unseen` nodes and `missing` devices (node, device) show nothing."""

    seconds: float
    rails: tuple[Rail, ...]
    transits: tuple[Transit, ...]
    unseen: tuple[str, ...]
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether nothing moved anywhere, so that nothing is proved."""
        return all(one.verdict in ("idle", "unknown") for one in self.rails if one.used)

    @property
    def proved(self) -> bool:
        """Whether every rail of the site was seen to carry, without an error."""
        return any(one.used for one in self.rails) and not self.problems()

    def problems(self) -> list[Problem]:
        """Return what keeps it from being a proof, each with the next thing to do."""
        return [*self._unproved(), *self._lost(), *self._relayed()]

    def _unproved(self) -> Iterator[Problem]:
        for node in self.unseen:
            seen = "it could not be looked at before and after"
            yield Problem(node, seen, "counters of every node", "tetraspark fabric show")
        for node, device in self.missing:
            fix = "tetraspark fabric show; then `fabric.devices`, or `devices` of that node"
            yield Problem(f"{node} {device}", "no such RDMA device", "a device of the node", fix)
        if self.quiet:
            seen = f"nothing moved on any rail in {self.seconds:.0f} s"
            fix = "send requests meanwhile (tetraspark bench), or use --traffic"
            yield Problem("fabric", seen, "traffic in the window", fix)
            return
        for one in self.rails:
            if one.used and one.verdict == "idle":
                seen = f"{amount(one)}, share {one.share or 0:.2f}, while others carry"
                fix = (
                    f"tetraspark fabric show: an address on {one.netdev}? then serve with "
                    "NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET"
                )
                yield Problem(one.where, seen, "traffic on every device of the site", fix)
            elif one.used and one.verdict == "unknown":
                seen = "it shows no counter that moves, or one that stopped at its end"
                fix = f"ls /sys/class/infiniband/{one.device}/ports/1/counters"
                yield Problem(one.where, seen, "bytes or packets", fix)

    def _lost(self) -> Iterator[Problem]:
        for one in (one for one in self.rails if one.used):
            for cause in dict.fromkeys(ERRORS[name] for name in one.errors):
                told = [f"{name} +{n}" for name, n in one.errors.items() if ERRORS[name] is cause]
                seen = f"{cause.name}, between here and {one.far}: {', '.join(told)}"
                yield Problem(one.where, seen, "no error in the window", cause.fix)

    def _relayed(self) -> Iterator[Problem]:
        for one in self.transits:
            if one.packets and one.hardware is not None and one.hardware < one.packets:
                seen = f"{one.packets - one.hardware} of {one.packets} frames went by the CPU"
                fix = f"tc -s filter show dev {one.netdev} ingress"
                where = f"{one.node} {one.netdev} rule {one.preference}"
                yield Problem(where, seen, "all of them in hardware", fix)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for `--json`."""
        problems = [one.as_dict() for one in self.problems()]
        return {"proved": self.proved, **asdict(self), "problems": problems}


def prove(
    before: Mapping[str, NodeFabric],
    after: Mapping[str, NodeFabric],
    seconds: float,
    nodes: Sequence[str],
    devices: Mapping[str, tuple[str, ...]],
) -> Proof:
    """Return what the counters of two looks, `seconds` apart, show of each RDMA device.

    `nodes` is in rank order, and `devices` are those that the site names. A device that is not
    there in both looks is none of the rails.
    """
    cabling = read_cabling(nodes, after)
    rails: list[Rail] = []
    transits: list[Transit] = []
    for node in nodes:
        if node in before and node in after:
            used = devices.get(node, ())
            rails += rails_of(before[node], after[node], cabling, used)
            transits += transits_of(before[node], after[node])
    unseen = tuple(node for node in nodes if node not in before or node not in after)
    there = {(one.node, one.device) for one in rails}
    named = [(node, device) for node in nodes for device in devices.get(node, ())]
    missing = tuple(one for one in named if one not in there and one[0] not in unseen)
    return Proof(seconds, tuple(rails), tuple(transits), unseen, missing)
