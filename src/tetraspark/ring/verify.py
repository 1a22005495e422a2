"""Verify: every object in place and in hardware, and traffic that shows it, path by path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tetraspark.doctor.check import Check, Verdict
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.ring.apply import Tell
from tetraspark.ring.diff import Diff
from tetraspark.ring.node_program import ask_all, problems_of
from tetraspark.ring.path import Path
from tetraspark.ring.plan import RingPlan
from tetraspark.ring.receipt import Receipt, receipt
from tetraspark.ring.traffic import Sent, Traffic
from tetraspark.ring.view import NodeView
from tetraspark.ring.wanted import rule_key, wanted

SURPLUS_PACKETS = 64
"""What a relay may count above what was sent and acknowledged: set-up and retries."""
FORWARDED = 0.01
"""What the kernel may forward of its own (containers) while frames pass, as a fraction of them."""
LOOK = "tetraspark ring diff PLAN; tetraspark ring rollback"


@dataclass(frozen=True)
class Counted:
    """A node's counters at one moment: packets by rule, the kernel's, ICRC errors by device."""

    rules: Mapping[str, int]
    forwarded: int
    icrc: Mapping[str, int | None]


def verify(
    plan: RingPlan,
    runner: NodeRunner,
    found: Diff,
    traffic: Traffic,
    tell: Tell = lambda text: None,
) -> Receipt:
    """Verify a plan on nodes that were just found as they are; returns the receipt, passed or not.

    Raises RunError when a node cannot be seen. Traffic is sent only over a ring whose objects are
    all in place: it could go anywhere over another.
    """
    if found.problems:
        raise RunError(*found.problems)
    views = {one.node: one for one in found.views}
    checks = [check for view in found.views for check in _objects(view)]
    identities = {node: view.identity for node, view in views.items()}
    if any(one.verdict == "failed" for one in checks):
        return receipt(plan.id, "none", identities, checks)
    before = counted(plan, runner)
    sent: dict[Path, Sent] = {}
    for path in plan.paths:
        if path.relays:
            tell(f"{plan.members[path.source].node} to {plan.members[path.target].node}")
            sent[path] = traffic.send(path)
    after = counted(plan, runner)
    checks += [check for path, one in sent.items() for check in _path(plan, path, one)]
    checks += counter_checks(plan, sent, before, after)
    return receipt(plan.id, traffic.name, identities, checks)


def counted(plan: RingPlan, runner: NodeRunner) -> dict[str, Counted]:
    """Return the counters of every node. Raises RunError."""
    answers = ask_all(runner, ((one.node, one.request("count")) for one in wanted(plan)))
    problems = problems_of(answers)
    if problems:
        raise RunError(*problems)
    return {
        node: Counted(one["rules"], one["forwarded"], one["icrc"])
        for node, one in answers.items()
        if not isinstance(one, RunError)
    }


def counter_checks(
    plan: RingPlan,
    sent: Mapping[Path, Sent],
    before: Mapping[str, Counted],
    after: Mapping[str, Counted],
) -> list[Check]:
    """Return what the counters say of the traffic between them. Pure.

    A relay's card must have counted about what was sent through it, the kernels must have
    forwarded nothing of it, and no far end may have met a frame whose ICRC is wrong.
    """
    checks = []
    for member in plan.members:
        old, new = before[member.node], after[member.node]
        relayed = 0
        for rule in plan.of(member.node).rules:
            through = _through(plan, member.rank, rule_key(rule), sent)
            relayed += through
            grown = new.rules[rule_key(rule)] - old.rules[rule_key(rule)]
            checks.append(_relay(member.node, rule_key(rule), through, grown))
        checks.append(_forwarded(member.node, new.forwarded - old.forwarded, relayed))
        checks += _icrc(member.node, old, new)
    return checks


def _through(plan: RingPlan, rank: int, key: str, sent: Mapping[Path, Sent]) -> int:
    """Return how many packets were sent over paths that a rule relays."""
    total = 0
    for path, one in sent.items():
        for hop, relay in enumerate(path.relays, 1):
            rules = plan.of(plan.members[rank].node).rules
            mine = (
                rule
                for rule in rules
                if rank == relay.rank
                and (rule.netdev, rule.redirect, rule.hop)
                == (relay.netdev_in, relay.netdev_out, hop)
            )
            total += one.packets * any(rule_key(rule) == key for rule in mine)
    return total


def _objects(view: NodeView) -> list[Check]:
    checks = []
    for one in view.wrong:
        observed = f"{one.key}: {one.state}: {one.detail}"
        name = "RING.IN_HARDWARE" if one.state == "not-in-hardware" else "RING.OBJECT"
        checks.append(Check(name, view.node, "failed", observed, "present, as planned", LOOK))
    if not view.wrong:
        observed = f"{len(view.objects)} objects present"
        checks.append(Check("RING.OBJECT", view.node, "ok", observed, "all present"))
    for queue in view.hairpin:
        if queue.state != "in effect":
            observed = f"{queue.netdev}: {queue.state}: {queue.detail}"
            fix = "stop the line; tetraspark ring rollback; tetraspark ring apply PLAN --hairpin"
            checks.append(Check("RING.HAIRPIN", view.node, "warning", observed, "in effect", fix))
    return [*checks, *_surroundings(view)]


def _surroundings(view: NodeView) -> list[Check]:
    """Say why ping and TCP do not reach beyond a neighbour, where that is so. RDMA does."""
    blocked = []
    if view.ip_forward != "1":
        blocked.append(f"net.ipv4.ip_forward is {view.ip_forward}")
    if view.forward_policy not in (None, "ACCEPT"):
        blocked.append(f"FORWARD policy {view.forward_policy}")
    checks = []
    if blocked:
        observed = f"{' and '.join(blocked)}: ping and TCP end at the neighbours; RDMA does not"
        fix = "leave it, unless TCP must cross: then accept the ring's devices in DOCKER-USER"
        checks.append(
            Check(
                "RING.TCP", view.node, "warning", observed, "known, not mistaken for a cable", fix
            )
        )
    for path in view.leftovers:
        fix = f"look at it; if it is of an earlier set-up: rm {path}"
        observed = f"{path} names a device of the ring"
        wanted_text = "no other file that gives the ring's devices addresses"
        checks.append(Check("RING.LEFTOVER", view.node, "warning", observed, wanted_text, fix))
    return checks


def _path(plan: RingPlan, path: Path, one: Sent) -> Sequence[Check]:
    node, target = plan.members[path.source].node, plan.members[path.target].node
    name = f"{node} to {target} over {path.netdev}"
    end = _verdict(one.delivered, f"{name}: {one.seen}", "all delivered")
    checks = [Check("RING.TRAFFIC", node, *end)]
    if one.sent_sha256 is None or one.received_sha256 is None:
        observed = f"{name}: the program that sent does not look at the payload"
        fix = "tetraspark qualify lanes, which does"
        # Each frame has its ICRC, which the far end counts; hashes would show it a second time.
        checks.append(Check("RING.PAYLOAD", node, "warning", observed, "equal hashes", fix))
    else:
        same = one.sent_sha256 == one.received_sha256
        observed = f"{name}: sent {one.sent_sha256[:12]}, received {one.received_sha256[:12]}"
        checks.append(Check("RING.PAYLOAD", node, *_verdict(same, observed, "equal hashes")))
    return checks


def _relay(node: str, key: str, through: int, grown: int) -> Check:
    # The other direction sends as much, and each of its packets has at most one acknowledgement.
    most = 2 * through + SURPLUS_PACKETS
    good = through <= grown <= most
    observed = f"{key}: {grown} packets in hardware, {through} sent through it"
    wanted_text = f"{through} to {most}"
    return Check("RING.RELAY", node, *_verdict(good, observed, wanted_text))


def _forwarded(node: str, grown: int, relayed: int) -> Check:
    good = grown <= relayed * FORWARDED
    observed = f"the kernel forwarded {grown} packets while {relayed} were relayed"
    return Check("RING.FORWARDED", node, *_verdict(good, observed, "none of them: the card relays"))


def _icrc(node: str, old: Counted, new: Counted) -> list[Check]:
    checks = []
    for device, now in new.icrc.items():
        was = old.icrc[device]
        if now is None or was is None:
            fix = f"ls /sys/class/infiniband/{device}/ports/1/hw_counters"
            observed = f"{device}: rx_icrc_encapsulated cannot be read"
            checks.append(Check("RING.ICRC", node, "unknown", observed, "+0", fix))
        else:
            observed = f"{device}: rx_icrc_encapsulated +{now - was}"
            checks.append(Check("RING.ICRC", node, *_verdict(now == was, observed, "+0")))
    return checks


def _verdict(good: bool, observed: str, wanted_text: str) -> tuple[Verdict, str, str, str]:
    return ("ok", observed, wanted_text, "") if good else ("failed", observed, wanted_text, LOOK)
