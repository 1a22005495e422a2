"""Checks of what forwards frames through a node: hairpin queues, and rules of tc."""

from collections.abc import Mapping

from tetraspark.doctor.check import Check, Verdict
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.fabric.tc_rule import TcRule

RING_APPLY = "tetraspark ring apply"


def relay_checks(fabrics: Mapping[str, NodeFabric]) -> list[Check]:
    """Return the checks of each node that has rules which redirect frames, or is a gateway."""
    relays = [
        check
        for fabric in fabrics.values()
        if any(rule.redirect for one in fabric.ports for rule in one.rules)
        for check in (_hardware(fabric), _hairpin(fabric))
    ]
    gateways = {
        route.gateway
        for fabric in fabrics.values()
        for route in fabric.routes
        if route.netdev in {one.netdev for one in fabric.ports}
    }
    return relays + [
        _forwarding(fabric)
        for fabric in fabrics.values()
        if gateways & {str(at.ip) for one in fabric.ports for at in one.addresses}
    ]


def _forwarding(fabric: NodeFabric) -> Check:
    """Neighbours ping and the others do not: the kernel between them does not forward.

    Docker has the firewall drop what is forwarded, and only root sees that, so this cannot be ok.
    """
    wanted = "forwarding on a node that others route through, and no firewall that drops it"
    if fabric.forwarding is False:
        fix = f"on {fabric.node}: sudo sysctl -w net.ipv4.ip_forward=1"
        return Check("RELAY.FORWARDING", fabric.node, "failed", "ip_forward is 0", wanted, fix)
    seen = "ip_forward is 1" if fabric.forwarding else "ip_forward is not shown"
    fix = f"on {fabric.node}: sudo iptables -S FORWARD; sudo iptables -S DOCKER-USER"
    seen = f"{seen}; the firewall's FORWARD chain cannot be seen without root"
    return Check("RELAY.FORWARDING", fabric.node, "unknown", seen, wanted, fix)


def _hardware(fabric: NodeFabric) -> Check:
    """A rule that is not in hardware sends every frame through the CPU, or drops it."""
    wanted = "every rule that redirects frames in hardware"
    all_rules = [(one, rule) for one in fabric.ports for rule in one.rules if rule.redirect]
    soft = [(one, rule) for one, rule in all_rules if rule.offloaded is not True]
    if not soft:
        seen = f"{len(all_rules)} rules in hardware"
        return Check("RELAY.HARDWARE", fabric.node, "ok", seen, wanted)
    verdict: Verdict = "failed" if any(rule.offloaded is False for _, rule in soft) else "unknown"
    seen = "; ".join(f"{_name(one, rule)} is {_state(rule)}" for one, rule in soft)
    fix = f"ethtool -K {soft[0][0].netdev} hw-tc-offload on, then: {RING_APPLY}"
    return Check("RELAY.HARDWARE", fabric.node, verdict, seen, wanted, fix)


def _name(one: Function, rule: TcRule) -> str:
    return f"rule {rule.preference} of {one.netdev} to {rule.redirect}"


def _state(rule: TcRule) -> str:
    return "not in hardware" if rule.offloaded is False else "of unknown state"


def _hairpin(fabric: NodeFabric) -> Check:
    """A size that was set and never taken over counts for nothing: the driver has the default."""
    wanted = "hairpin queues as they are set, on all ports alike"
    relays = [one for one in fabric.ports if any(rule.redirect for rule in one.rules)]
    silent = [one.netdev for one in relays if not one.hairpin or one.hairpin.queue_size is None]
    if silent:
        seen = f"devlink shows no hairpin_queue_size of {', '.join(silent)}"
        fix = f"on {fabric.node}: devlink dev param show"
        return Check("RELAY.HAIRPIN", fabric.node, "unknown", seen, wanted, fix)
    sizes = {one.netdev: one.hairpin for one in relays if one.hairpin}
    odd = [name for name, pin in sizes.items() if pin.effective_size != pin.queue_size]
    if odd:
        seen = "; ".join(
            f"{name} is set to {sizes[name].queue_size} and uses "
            f"{sizes[name].effective_size or 'an unknown size'}"
            for name in odd
        )
        addresses = [f"pci/{one.pci.address}" for one in relays if one.netdev in odd and one.pci]
        fix = (
            f"with the line stopped, on {fabric.node}: "
            f"sudo devlink dev reload {addresses[0]} action driver_reinit"
        )
        return Check("RELAY.HAIRPIN", fabric.node, "failed", seen, wanted, fix)
    seen = ", ".join(f"{name} {pin.queue_size}" for name, pin in sizes.items())
    uneven = len({pin.queue_size for pin in sizes.values()}) > 1
    fix = "the smallest decides what a collective may send: set all alike" if uneven else ""
    return Check("RELAY.HAIRPIN", fabric.node, "warning" if uneven else "ok", seen, wanted, fix)
