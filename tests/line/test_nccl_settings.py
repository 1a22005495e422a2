"""An NCCL profile in a plan: every rank gets every variable once, whoever set it."""

from dataclasses import replace

import pytest

from tests.fabric.model import NAMES
from tests.fabric.nccl_sites import FOUR, profile, site
from tests.fabric.sparks import Sparks, alternating, ring, switched
from tests.line.docker_env import env_of
from tests.line.ring_launch import launched
from tests.serving import ROOT
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.nccl_profile import NcclProfile, rank_problems
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.launch import Launch, wanted
from tetraspark.line.nccl_settings import nccl_settings
from tetraspark.line.plan import Plan
from tetraspark.line.settings import refuse_conflicts
from tetraspark.site.load import LoadedSite, load_site

LIBRARY = 'nccl_library_dir = "~/nccl"'
SIZES = {name: {f"/home/{name}/nccl/libnccl.so.2": 300} for name in NAMES}


def environments(plan: Plan) -> dict[int, dict[str, str]]:
    """Return the variables of each rank's docker command."""
    return {command.rank: env_of(plan, command.rank) for command in plan.ranks}


def planned(
    sparks: Sparks, loaded: LoadedSite, sizes: dict[str, dict[str, int]] | None = None
) -> tuple[Plan, NcclProfile]:
    launch = launched(sparks, loaded, sizes)
    assert launch.nccl is not None
    return fleet_plan(loaded, launch), launch.nccl


@pytest.mark.parametrize("env", ["", 'NCCL_IB_MERGE_NICS = "0"', 'NCCL_NET_PLUGIN = "mesh"'])
def test_field_8_every_rank_of_the_plan_has_every_variable_once(env: str) -> None:
    loaded = site(env=env, ring="channels_max = 4")
    plan, found = planned(ring(), loaded)
    refuse_conflicts(plan.settings)
    each = environments(plan)
    assert rank_problems(found, each, dict(enumerate(NAMES))) == []
    assert all("NCCL_CUMEM_ENABLE" in one for one in each.values())
    # One rank without one of them is named.
    del each[2]["NCCL_ALGO"]
    (problem,) = rank_problems(found, each, dict(enumerate(NAMES)))
    assert problem.where == "spark3 rank 2"


@pytest.mark.parametrize("cabled", [ring, alternating])
def test_field_1_a_ring_is_planned_without_trees_on_every_rank(cabled: object) -> None:
    assert callable(cabled)
    plan, _ = planned(cabled(), site(ring="channels_min = 2\nsubnet_prefix = 24"))
    for one in environments(plan).values():
        assert (one["NCCL_ALGO"], one["NCCL_PAT_ENABLE"]) == ("Ring", "0")
        assert (one["NCCL_CUMEM_ENABLE"], one["NCCL_RUNTIME_CONNECT"]) == ("1", "1")
        assert (one["NCCL_MIN_NCHANNELS"], one["NCCL_MAX_NCHANNELS"]) == ("2", "4")
        assert one["NCCL_IB_SUBNET_PREFIX_LEN"] == "24"
        assert one["NCCL_IB_HCA"] == "=" + ",".join(FOUR)


def test_before_a_launch_each_variable_is_named_without_a_value() -> None:
    loaded = site(env='NCCL_ALGO = "Ring"')
    _, found = planned(ring(), loaded)
    later = {one.name: one.origin.where for one in fleet_plan(loaded).settings if not one.value}
    assert set(found.environment) <= set(later)
    assert later["NCCL_IB_MERGE_NICS"] == "NCCL's profile, resolved at launch"
    assert "NCCL_ALGO" not in later
    assert all("NCCL_CUMEM_ENABLE" not in one for one in environments(fleet_plan(loaded)).values())


def test_the_site_of_a_ring_that_ships_can_be_launched() -> None:
    loaded = load_site(ROOT / "sites" / "four-sparks-ring.toml")
    plan, found = planned(ring(), loaded)
    assert (found.name, found.version) == ("stock-merged", "2.30.7")
    assert rank_problems(found, environments(plan), dict(enumerate(NAMES))) == []


def silent(sparks: Sparks, *nodes: str) -> Sparks:
    """Sparks that show nothing of the wire, but on `nodes` their neighbour tables."""
    sparks.lldp = set()
    sparks.neighbours = set(nodes)
    return sparks


@pytest.mark.parametrize("heard", [(), NAMES[:1], NAMES[:2], NAMES])
def test_a_switch_needs_no_evidence_of_the_wire(heard: tuple[str, ...]) -> None:
    loaded = site(topology="switch", devices=FOUR[:2])
    plan, found = planned(silent(switched(), *heard), loaded)
    assert found.name == "switch"
    assert {one["NCCL_IB_HCA"] for one in environments(plan).values()} == {
        "=rocep1s0f0,roceP2p1s0f0"
    }


def test_a_ring_may_be_proven_by_its_subnets() -> None:
    assert planned(silent(ring()), site())[1].name == "stock-merged"


def refusal(
    sparks: Sparks, loaded: LoadedSite, sizes: dict[str, dict[str, int]] | None = None
) -> tuple[Problem, ...]:
    with pytest.raises((RunError, UsageError)) as caught:
        launched(sparks, loaded, sizes)
    return caught.value.problems


def test_a_ring_on_a_switch_is_refused() -> None:
    problems = refusal(switched(), site(devices=FOUR[:2]))
    assert [one.where for one in problems] == ["cables"]


def test_a_version_nobody_knows_is_refused_with_the_way_to_state_it() -> None:
    branch = 'SGLANG_RUST_BUILD_MODE = "never"'
    (problem,) = refusal(ring(), site(recipe="canary", env=branch))
    assert "torch.cuda.nccl.version()" in problem.fix
    assert "fabric.nccl.version" in problem.fix
    loaded = site(recipe="canary", env=branch, nccl='version = "2.30.7"')
    assert planned(ring(), loaded)[1].version == "2.30.7"
    (problem,) = refusal(ring(), site(recipe="canary", env=branch, nccl='version = "2.29.3"'))
    assert problem.seen == "NCCL 2.29.3"


def test_a_stated_version_that_contradicts_the_recipe_is_refused() -> None:
    (problem,) = refusal(ring(), site(nccl='version = "2.29.7"'))
    assert problem.seen == "`fabric.nccl.version` is '2.29.7'"
    assert "2.30.7, which recipe 'release' installs" in problem.wanted


def test_everything_wrong_is_told_at_once_and_a_dead_device_only_once() -> None:
    sparks = ring()
    sparks.port("spark2", 0).address = None
    (problem,) = refusal(sparks, site())
    assert problem.where == "spark2 rocep1s0f0"
    problems = refusal(sparks, site(env='NCCL_ALGO = "Tree"'))
    assert [one.where for one in problems] == ["spark2 rocep1s0f0", "ring.toml:19"]
    (problem,) = refusal(ring(), site(env='NCCL_ALGO = "Tree"'))
    assert problem.seen == "NCCL_ALGO = 'Tree'"


def mounts(plan: Plan) -> list[str]:
    return [word for one in plan.ranks for word in one.argv if "libnccl" in word]


def test_a_patched_library_is_mounted_on_the_head_and_every_worker() -> None:
    loaded = site(ring=f'{LIBRARY}\nnccl_patch = "dual-pci"')
    plan, found = planned(ring(), loaded, SIZES)
    target = found.overlays[0].target
    assert mounts(plan) == [
        f"type=bind,source=/home/{name}/nccl/libnccl.so.2,target={target},readonly"
        for name in NAMES
    ]
    for one in environments(plan).values():
        assert one["NCCL_SWITCHLESS_RING_ONLY"] == "1"
        assert one["NCCL_IB_EXTENDED_IPV4_GIDS"] == "1"
    assert "nccl/libnccl.so.2" in wanted(loaded).sizes[0]
    assert len(mounts(fleet_plan(loaded))) == 4


def test_a_library_that_is_missing_or_another_on_a_node_is_refused() -> None:
    sizes = {**SIZES, "spark3": {}, "spark4": {"/home/spark4/nccl/libnccl.so.2": 301}}
    missing, other = refusal(ring(), site(ring=LIBRARY), sizes)
    assert missing.where == "spark3 /home/spark3/nccl/libnccl.so.2"
    assert missing.seen == "no such file"
    assert other.where.startswith("spark4 ")
    assert other.seen == "301 bytes; spark1 has one of 300"


def test_what_a_library_does_needs_a_library() -> None:
    with pytest.raises(UsageError, match="`nccl_patch` without `nccl_library_dir`"):
        site(ring='nccl_patch = "dual-pci"')


def test_origins_are_the_sites_line_or_the_reason() -> None:
    settings = {
        one.name: one for one in nccl_settings(profile(ring(), site(ring="channels_min = 2")))
    }
    origin = settings["NCCL_MIN_NCHANNELS"].origin
    assert (origin.kind, origin.where) == ("file", "ring.toml:18")
    assert settings["NCCL_ALGO"].origin.where.startswith("NCCL profile stock-merged: trees need")
    assert settings["NCCL_MAX_NCHANNELS"].origin.kind == "derived"
    assert {one.rank for one in settings.values()} == {None}


def test_a_refused_profile_is_never_planned() -> None:
    refused = profile(ring(), site(), "2.29.7")
    with pytest.raises(RunError, match=r"NCCL 2\.29\.7"):
        nccl_settings(refused)
    launch: Launch = replace(launched(ring(), site()), nccl=refused)
    with pytest.raises(RunError, match=r"NCCL 2\.29\.7"):
        fleet_plan(site(), launch)
