"""Rules that must be in hardware, and hairpin queues whose size was taken over."""

from dataclasses import replace

import pytest

from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks, relay_rule, ring
from tetraspark.doctor.check import Check
from tetraspark.fabric.hairpin import Hairpin
from tetraspark.fabric.relay_checks import relay_checks


def relayed(offloaded: bool = True, size: int = 8192, reloads: int = 1) -> Sparks:
    """A ring where spark2 forwards both ways, on its first half."""
    sparks = ring()
    for cage in (0, 1):
        port = sparks.port("spark2", cage)
        port.rules = [relay_rule(49152 + cage, f"enp1s0f{1 - cage}np{1 - cage}", offloaded)]
        port.queue_size, port.reloads = size, reloads
    return sparks


def found(sparks: Sparks) -> dict[str, Check]:
    checks = relay_checks({name: sparks.fabric(name) for name in ("spark1", "spark2")})
    assert {one.node for one in checks} == {"spark2"}, "a node without rules relays nothing"
    return {one.id: one for one in checks}


def test_rules_in_hardware_over_queues_in_effect_pass() -> None:
    checks = found(relayed())
    assert {one.verdict for one in checks.values()} == {"ok"} and len(checks) == 2


def test_L42_a_rule_that_is_not_in_hardware_fails() -> None:
    check = found(relayed(offloaded=False))["RELAY.HARDWARE"]
    assert check.verdict == "failed"
    assert "rule 49152 of enp1s0f0np0 to enp1s0f1np1 is not in hardware" in check.observed


def test_L42_a_rule_that_says_nothing_is_unknown() -> None:
    sparks = relayed()
    for cage in (0, 1):
        for rule in sparks.port("spark2", cage).rules:
            del rule["options"]["in_hw"]
    assert found(sparks)["RELAY.HARDWARE"].verdict == "unknown"


def test_R17_a_pending_hairpin_size_fails_and_names_the_reload() -> None:
    check = found(relayed(reloads=0))["RELAY.HAIRPIN"]
    assert check.verdict == "failed"
    assert "enp1s0f0np0 is set to 8192 and uses 1024" in check.observed
    assert "sudo devlink dev reload pci/0000:01:00.0 action driver_reinit" in check.fix


@pytest.mark.parametrize(
    ("hairpin", "size"),
    [
        (Hairpin(queue_size=8192, reloads=1), 8192),
        (Hairpin(queue_size=8192, reloads=0), 1024),
        (Hairpin(queue_size=8192), None),
        (Hairpin(queue_size=1024), 1024),
        (Hairpin(queue_size=8192, reloads=2, reload_failed=True), None),
        (Hairpin(), None),
    ],
)
def test_R16_R30_the_size_that_caps_a_collective_is_the_one_in_effect(
    hairpin: Hairpin, size: int | None
) -> None:
    assert hairpin.effective_size == size


def test_uneven_and_unseen_queues() -> None:
    sparks = relayed()
    sparks.port("spark2", 1).queue_size = 1024
    assert found(sparks)["RELAY.HAIRPIN"].verdict == "warning"
    fabric = relayed().fabric("spark2")
    blind = replace(fabric, functions=tuple(replace(f, hairpin=None) for f in fabric.functions))
    checks = {one.id: one for one in relay_checks({"spark2": blind})}
    assert checks["RELAY.HAIRPIN"].verdict == "unknown"


@pytest.mark.parametrize(
    ("forwarding", "verdict", "seen"),
    [("0", "failed", "ip_forward is 0"), ("1", "unknown", "ip_forward is 1; the firewall's")],
)
def test_R12_a_node_that_others_route_through_must_forward(
    forwarding: str, verdict: str, seen: str
) -> None:
    sparks = ring()
    sparks.forwarding["spark2"] = forwarding
    sparks.gateways = [("spark1", "10.10.1.0/24", "10.10.0.11", "enp1s0f0np0")]
    (check,) = relay_checks({name: sparks.fabric(name) for name in NAMES})
    assert (check.id, check.node, check.verdict) == ("RELAY.FORWARDING", "spark2", verdict)
    assert check.observed.startswith(seen)
