"""Frames that a node forwarded for others in a window of time, by its rules of tc."""

from collections.abc import Iterator
from dataclasses import dataclass

from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.prove_counters import grown


@dataclass(frozen=True)
class Transit:
    """Frames that a relay rule took in the window; `hardware` of them past the CPU."""

    node: str
    netdev: str
    redirect: str
    preference: int | None
    packets: int | None
    hardware: int | None


def transits_of(before: NodeFabric, after: NodeFabric) -> Iterator[Transit]:
    """Return the growth of every rule that redirects and was there in both looks."""
    old = {(r.netdev, r.preference, r.handle): r for one in before.functions for r in one.rules}
    for rule in (rule for one in after.functions for rule in one.rules if rule.redirect):
        first = old.get((rule.netdev, rule.preference, rule.handle))
        if first is not None and rule.redirect is not None:
            yield Transit(
                node=after.node,
                netdev=rule.netdev,
                redirect=rule.redirect,
                preference=rule.preference,
                packets=_growth(first.packets, rule.packets),
                hardware=_growth(first.hardware_packets, rule.hardware_packets),
            )


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else grown(before, after)[0]
