"""An NCCL profile in a plan: every rank gets every variable once, whoever set it."""

import pytest

from tests.fabric.model import NAMES
from tests.fabric.nccl_sites import profile, site
from tests.fabric.sparks import ring
from tetraspark.errors import RunError
from tetraspark.fabric.nccl_profile import rank_problems
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.nccl_settings import nccl_settings
from tetraspark.line.settings import env_of, refuse_conflicts


@pytest.mark.parametrize("env", ["", 'NCCL_IB_MERGE_NICS = "0"', 'NCCL_NET_PLUGIN = "mesh"'])
def test_field_8_every_rank_of_the_plan_has_every_variable_once(env: str) -> None:
    loaded = site(env=env, ring="channels_max = 4")
    found = profile(ring(), loaded)
    settings = [*fleet_plan(loaded).settings, *nccl_settings(found)]
    refuse_conflicts(settings)
    pairs = {rank: env_of(settings, rank) for rank in range(4)}
    for several in pairs.values():
        assert len(several) == len(dict(several))
    environments = {rank: dict(several) for rank, several in pairs.items()}
    assert rank_problems(found, environments, dict(enumerate(NAMES))) == []
    assert all("NCCL_CUMEM_ENABLE" in one for one in environments.values())
    # Without them the same plan lacks what a ring needs, on every rank.
    bare = {rank: dict(env_of(fleet_plan(loaded).settings, rank)) for rank in range(4)}
    assert len(rank_problems(found, bare, dict(enumerate(NAMES)))) == 4 * len(found.variables)


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
    with pytest.raises(RunError, match=r"NCCL 2\.29\.7"):
        nccl_settings(profile(ring(), site(), "2.29.7"))
