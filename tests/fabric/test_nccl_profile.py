"""The choice of an NCCL profile: by cabling, version and site, whose words win or clash."""

from dataclasses import replace

import pytest

from tests.fabric.model import NAMES
from tests.fabric.nccl_sites import FOUR, TWO, profile, site
from tests.fabric.sparks import alternating, cabled, line, pair, ring, switched
from tetraspark.errors import RunError, UsageError
from tetraspark.fabric.nccl_port import functions_of
from tetraspark.fabric.nccl_profile import Variable, rank_problems
from tetraspark.fabric.nccl_version import (
    knows_subnets,
    parse_version,
    pinned_version,
)

LIBRARY = 'nccl_library_dir = "/opt/nccl"'
RUST = 'SGLANG_RUST_BUILD_MODE = "never"'
SWITCH = ("rocep1s0f0", "roceP2p1s0f0")


def test_a_uniform_ring_needs_no_patch() -> None:
    found = profile(ring(), site())
    assert (found.name, found.needs_patch, found.refusals) == ("stock-merged", False, ())
    assert dict(found.environment) == {
        "NCCL_NET": "IB",
        "NCCL_NET_PLUGIN": "none",
        "NCCL_CUMEM_ENABLE": "1",
        "NCCL_RUNTIME_CONNECT": "1",
        "NCCL_ALGO": "Ring",
        "NCCL_PAT_ENABLE": "0",
        "NCCL_IB_SUBNET_AWARE_ROUTING": "1",
        "NCCL_IB_SUBNET_PREFIX_LEN": "24",
        "NCCL_IB_MERGE_NICS": "1",
        "NCCL_MIN_NCHANNELS": "4",
        "NCCL_MAX_NCHANNELS": "4",
    }
    assert all(set(names) == set(FOUR) for names in found.carrying.values())
    assert found.overlays == () and found.changes == ()
    found.require()


def test_field_4_an_alternating_ring_takes_fusion_and_says_so() -> None:
    found = profile(alternating(), site())
    assert (found.name, found.refusals) == ("stock-merged", ())
    (change,) = found.changes
    assert change.startswith("this ring needs NCCL_IB_MERGE_NICS=1; swap the two cables of")


def test_a_site_without_fusion_gets_the_uniform_profile() -> None:
    found = profile(ring(), site(env='NCCL_IB_MERGE_NICS = "0"'))
    assert (found.name, found.refusals) == ("stock-uniform", ())
    assert found.environment["NCCL_CROSS_NIC"] == "0"
    assert "NCCL_IB_MERGE_NICS" not in found.environment
    (kept,) = found.kept
    assert (kept.name, kept.value, kept.where) == ("NCCL_IB_MERGE_NICS", "0", "ring.toml:19")


def test_field_3_without_fusion_an_alternating_ring_is_refused_before_it_fails() -> None:
    found = profile(alternating(), site(env='NCCL_IB_MERGE_NICS = "0"'))
    around = zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True)
    assert [one.where for one in found.refusals] == [f"{a} -> {b}" for a, b in around]
    first = found.refusals[0]
    assert "ETIMEDOUT 110" in first.seen
    assert first.fix.startswith("remove NCCL_IB_MERGE_NICS=0, or swap the two cables of")
    with pytest.raises(RunError):
        found.require()


@pytest.mark.parametrize("version", ["2.27.3", "2.29.7", "2.30.4", "2.30.6"])
def test_field_7_an_older_nccl_is_refused_on_a_ring(version: str) -> None:
    found = profile(ring(), site(), version)
    (problem,) = found.refusals
    assert found.needs_patch
    assert problem.seen == f"NCCL {version}" and "silently" in problem.wanted
    assert "fabric.ring.nccl_library_dir" in problem.fix


def test_an_unknown_version_is_refused_on_a_ring_and_not_on_a_switch() -> None:
    (problem,) = profile(ring(), site(), None).refusals
    assert problem.where == "image line:one" and "docker run --rm" in problem.fix
    assert "fabric.nccl.version" in problem.fix
    found = profile(switched(), site(topology="switch", devices=SWITCH), None)
    assert (found.name, found.refusals) == ("switch", ())


@pytest.mark.parametrize("version", ["2.30.7", "2.31.2", "2.32.3"])
def test_a_newer_nccl_is_taken(version: str) -> None:
    assert profile(ring(), site(), version).refusals == ()


def test_a_switch_gets_two_variables_and_all_its_devices() -> None:
    found = profile(switched(), site(topology="switch", devices=SWITCH))
    assert found.name == "switch"
    assert dict(found.environment) == {"NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none"}
    assert set(found.carrying["spark3"]) == set(SWITCH)


def test_a_pair_cabled_like_to_like_needs_nothing_and_one_cabled_across_needs_subnets() -> None:
    two = NAMES[:2]
    found = profile(pair(), site(topology="pair", nodes=two))
    assert (found.name, found.refusals) == ("pair", ())
    across = cabled([((NAMES[0], 0), (NAMES[1], 1)), ((NAMES[0], 1), (NAMES[1], 0))])
    found = profile(across, site(topology="pair", nodes=two))
    assert (found.name, found.refusals) == ("stock-uniform", ())
    assert set(found.carrying["spark1"]) == set(FOUR)
    assert len(profile(across, site(topology="pair", nodes=two), "2.29.7").refusals) == 1


def test_a_patched_library_is_mounted_on_head_and_workers_alike() -> None:
    found = profile(ring(), site(devices=TWO, ring=LIBRARY), "2.29.7")
    assert (found.name, found.needs_patch, found.refusals) == ("patched", True, ())
    target = "/opt/tetraspark/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
    assert [one.volume for one in found.overlays] == [f"/opt/nccl/libnccl.so.2:{target}:ro"] * 4
    assert found.environment["NCCL_SWITCHLESS_RING_ONLY"] == "1"
    assert found.environment["NCCL_IB_MERGE_NICS"] == "0"
    assert "NCCL_IB_EXTENDED_IPV4_GIDS" not in found.environment


def test_workers_may_have_the_library_elsewhere_and_the_image_too() -> None:
    text = f'{LIBRARY}\nworker_nccl_library_dir = "~/n/"\nnccl_target = "/x/libnccl.so.2"'
    found = profile(ring(), site(ring=text))
    assert [one.source for one in found.overlays] == ["/opt/nccl/libnccl.so.2"] + [
        "~/n/libnccl.so.2"
    ] * 3
    assert {one.target for one in found.overlays} == {"/x/libnccl.so.2"}
    branch = profile(ring(), site(ring=LIBRARY, recipe="canary", env=RUST), None)
    assert branch.overlays[0].target.startswith("/opt/sglang/lib/python3.12/")


def test_field_9_devices_that_the_patched_listener_hides_are_left_out() -> None:
    loaded = site(ring=LIBRARY)
    two = profile(ring(), loaded)
    assert all(set(names) == set(TWO) for names in two.devices.values())
    assert "roceP2p1s0f0, roceP2p1s0f1: left out" in two.changes[0]
    four = profile(ring(), loaded, patch="dual-pci")
    assert all(set(names) == set(FOUR) for names in four.carrying.values())
    assert four.environment["NCCL_IB_EXTENDED_IPV4_GIDS"] == "1"
    (change,) = four.changes
    assert change.startswith("NCCL 2.30.7 of the image needs no patch: delete fabric.ring.")


def test_more_functions_are_named_where_all_would_carry() -> None:
    found = profile(ring(), site(devices=TWO))
    assert found.changes == (
        "name roceP2p1s0f0, roceP2p1s0f1 in fabric.devices: they would carry as well",
    )


def test_functions_without_an_address_are_named_and_not_taken_for_carriers() -> None:
    sparks = ring()
    for name in NAMES:
        for cage in (0, 1):
            sparks.port(name, cage, 1).address = None
    found = profile(sparks, site(devices=TWO))
    assert found.refusals == ()
    assert found.changes[0].startswith("roceP2p1s0f0 has no IPv4 address on spark1, spark2")
    refused = profile(sparks, site(devices=FOUR)).refusals
    assert refused and all("ENODATA 61" in one.seen for one in refused)


def test_one_channel_leaves_the_second_domain_out() -> None:
    found = profile(ring(), site(ring="channels_min = 1\nchannels_max = 1"))
    assert all(set(names) == set(TWO) for names in found.devices.values())
    assert "1 as the most channels does not reach them" in found.changes[0]
    low = next(one for one in found.variables if one.name == "NCCL_MIN_NCHANNELS")
    assert (low.value, low.where) == ("1", "ring.toml:18")


def test_field_1_a_variable_that_brings_trees_back_clashes_and_both_are_named() -> None:
    with pytest.raises(UsageError) as caught:
        profile(ring(), site(env='NCCL_CUMEM_ENABLE = "0"\nNCCL_ALGO = "Tree"'))
    first, second = caught.value.problems
    assert (first.where, first.seen) == ("ring.toml:19", "NCCL_CUMEM_ENABLE = '0'")
    assert first.wanted.startswith("NCCL_CUMEM_ENABLE=1, of the NCCL profile stock-merged:")
    assert (second.where, second.seen) == ("ring.toml:20", "NCCL_ALGO = 'Tree'")


def test_a_patched_library_lets_the_site_keep_cumem_off() -> None:
    found = profile(ring(), site(ring=LIBRARY, env='NCCL_CUMEM_ENABLE = "0"'), None)
    assert found.refusals == () and "NCCL_CUMEM_ENABLE" not in found.environment


def test_a_clash_with_a_key_names_its_line() -> None:
    loaded = site(ring="subnet_prefix = 28", env='NCCL_IB_SUBNET_PREFIX_LEN = "24"')
    with pytest.raises(UsageError) as caught:
        profile(ring(), loaded)
    assert "NCCL_IB_SUBNET_PREFIX_LEN=28 (ring.toml:18)" in caught.value.problems[0].wanted


def test_sockets_that_the_site_asks_for_win_and_nothing_is_said_to_carry() -> None:
    found = profile(ring(), site(env='NCCL_NET = "Socket"'), None)
    assert "NCCL_NET" not in found.environment
    assert set(found.carrying.values()) == {()} and found.refusals == ()
    assert "NCCL_NET=Socket (ring.toml:19): what carries is not known" in found.changes
    assert set(profile(ring(), site(env='NCCL_NET = "ib"')).carrying["spark1"]) == set(FOUR)


def test_a_plugin_that_the_site_asks_for_is_not_modelled() -> None:
    found = profile(ring(), site(env='NCCL_NET_PLUGIN = "mesh"'), "2.29.7")
    assert set(found.carrying.values()) == {()} and found.refusals == ()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('nccl_library_dir = "lib"', "`fabric.ring.nccl_library_dir` is 'lib'"),
        (f'{LIBRARY}\nnccl_target = "~/libnccl.so.2"', "`fabric.ring.nccl_target` is '~/"),
        (f'{LIBRARY}\nnccl_target = "/opt/libnccl.so.3"', "`fabric.ring.nccl_target` is '/opt"),
    ],
)
def test_paths_of_a_library_that_are_none_are_refused_with_their_line(text: str, seen: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile(ring(), site(ring=text))
    (problem,) = caught.value.problems
    assert problem.where.startswith("ring.toml:1") and problem.seen.startswith(seen)


def test_field_2_the_switch_of_a_patch_is_never_set_for_stock_nccl() -> None:
    names = set(profile(ring(), site()).environment)
    assert not names & {"NCCL_SWITCHLESS_RING_ONLY", "NCCL_SKIP_TREE_CONNECT"}


@pytest.mark.parametrize("words", ["'--moe-a2a-backend', 'deepep'", "'--moe-a2a-backend=pplx'"])
def test_an_all_to_all_is_refused_on_a_ring_and_not_on_a_switch(words: str) -> None:
    (problem,) = profile(ring(), site(words=words)).refusals
    assert problem.where.startswith("ring.toml:") and "no all-to-all" in problem.wanted
    assert profile(switched(), site(topology="switch", devices=SWITCH, words=words)).refusals == ()
    none = site(words="'--moe-a2a-backend', 'none'")
    assert profile(ring(), none).refusals == ()


def test_ranks_out_of_the_order_of_the_cables_are_refused_with_the_order() -> None:
    nodes = ("spark1", "spark3", "spark2", "spark4")
    (problem,) = profile(ring(), site(nodes=nodes)).refusals
    assert problem.fix.endswith("in the order spark1, spark2, spark3, spark4")


def test_a_line_of_four_is_no_ring() -> None:
    (problem,) = profile(line(), site()).refusals
    assert problem.seen == "the cables make a line"
    assert problem.fix.startswith("plug a cable into spark4 port 0 and spark1 port 1")


def test_a_node_that_was_not_looked_at_is_no_ring_either() -> None:
    (problem,) = profile(ring(), site(), absent="spark3").refusals
    assert (problem.where, problem.seen) == ("spark3", "not looked at")


def test_a_ring_of_cables_swapped_against_their_addresses_is_refused() -> None:
    sparks = ring()
    for number in range(4):
        # The addresses of the next cable, on the plugs of this one.
        sparks.port(NAMES[number], 0).address = f"10.10.{(number + 1) % 4}.10/24"
    refused = profile(sparks, site(devices=TWO)).refusals
    assert refused and all("ETIMEDOUT 110" in one.seen for one in refused)


def test_a_device_that_a_node_does_not_have_is_named() -> None:
    with pytest.raises(RunError) as caught:
        functions_of({"spark1": ("rocep9s0f0",)}, {"spark1": ring().fabric("spark1")})
    (problem,) = caught.value.problems
    assert problem.where == "spark1 rocep9s0f0" and "rocep1s0f0" in problem.seen


def test_field_8_every_rank_must_have_every_variable() -> None:
    found = profile(ring(), site(env='NCCL_NET = "Socket"'))
    whole = {**found.environment, "NCCL_NET": "Socket"}
    nodes = dict(enumerate(NAMES))
    assert rank_problems(found, dict.fromkeys(range(4), whole), nodes) == []
    lost = {name: value for name, value in whole.items() if name != "NCCL_CUMEM_ENABLE"}
    ranks = {0: whole, 1: lost, 2: whole, 3: {**whole, "NCCL_NET": "IB"}}
    first, second = rank_problems(found, ranks, nodes)
    assert (first.where, first.seen) == ("spark2 rank 1", "not set")
    assert first.wanted == "NCCL_CUMEM_ENABLE=1"
    assert (second.where, second.seen) == ("spark4 rank 3", "NCCL_NET=IB")


def test_a_variable_without_a_reason_and_one_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="without a value or a reason"):
        Variable("NCCL_NET", "IB", "")
    found = profile(ring(), site())
    with pytest.raises(ValueError, match="more than once: NCCL_NET"):
        replace(found, kept=(found.variables[0],))


def test_versions() -> None:
    assert parse_version("2.30.7+cuda13.0") == parse_version("2.30.7-1") == (2, 30, 7)
    with pytest.raises(ValueError, match="not a version of NCCL"):
        parse_version("newest")
    assert [knows_subnets(one) for one in (None, "2.30.6", "2.30.7")] == [None, False, True]
    assert knows_subnets(pinned_version("release")) and pinned_version("canary") is None


def test_a_ring_of_three_has_no_opposite_nodes_and_the_same_profile() -> None:
    three = NAMES[:3]
    sparks = cabled([((three[i], 0), (three[(i + 1) % 3], 1)) for i in range(3)])
    found = profile(sparks, site(nodes=three))
    assert (found.name, found.refusals) == ("stock-merged", ())
    assert set(found.carrying) == set(three)
