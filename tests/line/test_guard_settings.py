"""[guards] in a plan: every limit, where it comes from, and what a rank's receipt must say."""

import json
from dataclasses import replace

import pytest

from tests.serving import ROOT
from tetraspark.engine.guard_env import PREFIX, GuardSettings, guard_settings
from tetraspark.fleet.runner import Inventory
from tetraspark.line.engine_log import parse
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.guard_settings import limits_of, planned_guards
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.line.receipt import missing, wrong
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

GUARDS = (
    "\n[guards]\nmax_new_tokens = 900\nloop_abort = false\nreasoning_efforts = ['none', 'high']\n"
)


def fleet(name: str, more: str = "") -> Plan:
    path = ROOT / "sites" / f"{name}.toml"
    return fleet_plan(load_source(decode_source(path, (path.read_text() + more).encode())))


@pytest.fixture
def guarded(inventory: Inventory) -> Plan:
    path = ROOT / "sites" / "local.toml"
    source = decode_source(path, (path.read_text() + GUARDS).encode())
    return local_plan(load_source(source), inventory)


def test_all_limits_reach_every_rank_with_their_origin(guarded: Plan) -> None:
    settings = {one.name: one for one in guarded.settings if one.name.startswith(PREFIX)}
    wanted = GuardSettings(
        max_new_tokens=900,
        default_new_tokens=900,
        loop_abort=False,
        reasoning_efforts=("none", "high"),
    )
    assert planned_guards(guarded) == wanted.variables()
    for rank in guarded.ranks:
        assert guard_settings(dict(rank.env)) == wanted
    assert settings[f"{PREFIX}LOOP_ABORT"].origin.where.endswith("local.toml:39")
    assert "default of [guards]" in settings[f"{PREFIX}LOOP_NGRAM"].origin.where
    assert limits_of(json.loads(json.dumps(guarded.as_dict()))) == wanted


def test_without_the_section_there_are_no_limits(plan: Plan) -> None:
    assert planned_guards(plan) == {}
    assert limits_of(json.loads(json.dumps(plan.as_dict()))) is None
    assert {kind for _, kind in missing([], plan)} == {"engine", "tp_all_reduce"}


def test_a_fleet_of_the_release_has_the_plugins_limits_and_the_branch_its_own() -> None:
    release = fleet("four-sparks-switch")
    assert guard_settings(planned_guards(release)) == GuardSettings()
    assert not any(one.name.startswith("DSV41_LOOP") for one in release.settings)
    branch = fleet("four-sparks-ring")
    assert planned_guards(branch) == {}
    values = {one.name: one.value for one in branch.settings if one.name.startswith("DSV41_")}
    assert (values["DSV41_MAX_NEW_TOKENS"], values["DSV41_LOOP_LINE_REPEATS"]) == ("32768", "8")


def receipt(rank: int, settings: dict[str, str]) -> str:
    return json.dumps({"tetraspark": "guards", "rank": rank, "world": 4, "settings": settings})


def test_a_rank_must_say_that_its_limits_are_in_force(guarded: Plan) -> None:
    assert [kind for rank, kind in missing([], guarded) if rank == 2][-1] == "guards"
    lines = parse(2, [receipt(2, planned_guards(guarded))])
    assert (2, "guards") not in missing(lines, guarded)
    assert wrong(lines, guarded) == []


def test_a_rank_with_other_limits_is_named(guarded: Plan) -> None:
    other = planned_guards(guarded) | {f"{PREFIX}MAX_NEW_TOKENS": "9"}
    (problem,) = wrong(parse(2, [receipt(2, other)]), guarded)
    assert "guards receipt with settings" in problem.seen
    assert problem.where == "rank 2 (node2)"
    assert wrong(parse(2, [receipt(2, other)]), replace(guarded, settings=()))
