"""The variables of a plan become the group's settings and its transport, or say what is wrong."""

from pathlib import Path

import pytest

from tests.line.docker_env import env_of
from tests.site.test_verbs_rules import text_of
from tetraspark.collectives.verbs import VerbsTransport
from tetraspark.collectives.wiring import Wiring
from tetraspark.engine.communicator_env import settings_from, transport_from
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.lanes import lanes_of
from tetraspark.line.plan import Plan
from tetraspark.line.receipt import wrong
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[2] / "sites"
SECTION = '[collectives]\ntransport = "verbs"\nmin_lanes = 1\nmax_two_shot_bytes = 8388608\n'


@pytest.fixture
def plan() -> Plan:
    text = text_of("four-sparks-switch", SECTION).replace(
        'topology = "switch"', 'topology = "switch"\ntraffic_class = 96\nmin_rdma_mtu = 1024'
    )
    loaded = load_source(decode_source(SITES / "mine.toml", text.encode()))
    return fleet_plan(loaded, None, lanes_of(loaded))


def test_a_fleet_plan_tells_the_lanes(plan: Plan) -> None:
    assert plan.transport == "verbs"
    env = env_of(plan, 2)
    found = settings_from(env)
    assert found is not None
    assert (found.lanes, found.max_two_shot_bytes, found.two_shot_from) == (2, 8 << 20, 2097168)
    wiring = Wiring.from_json(env["TETRASPARK_WIRING"])
    assert wiring.nodes == ("spark1", "spark2", "spark3", "spark4")
    assert [str(one) for one in wiring.devices[2]] == ["rocep1s0f1", "roceP2p1s0f1"]
    assert wiring.ends(0, 3) == ((0, 0), (1, 1))
    assert found.routes == wiring.routes()
    assert [settings_from(env_of(plan, rank)) for rank in range(4)] == [found] * 4


def test_the_transport_is_told_what_the_site_says(plan: Plan) -> None:
    transport = transport_from(env_of(plan, 1), 1)
    assert isinstance(transport, VerbsTransport)
    options = transport._options
    assert (options.min_lanes, options.min_mtu, options.traffic_class) == (1, 1024, 96)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("TETRASPARK_WIRING", None, "TETRASPARK_WIRING: not set"),
        ("TETRASPARK_MIN_LANES", None, "TETRASPARK_MIN_LANES: not set"),
        ("TETRASPARK_TRANSPORT", "tcp", "wanted shm or verbs"),
        ("TETRASPARK_WIRING", "{", "not a wiring"),
        ("TETRASPARK_WIRING", "[" * 100_000, "not a wiring"),
        ("TETRASPARK_WIRING", '{"nodes":["a"],"devices":[["x"]],"lanes":[]}', "wanted 2"),
        ("TETRASPARK_WIRING", '{"nodes":["a","b"],"devices":[["x"],["y"]],"lanes":[]}', "wiring"),
        (
            "TETRASPARK_WIRING",
            '{"nodes":["a","b"],"devices":[["x"],["y"]],"lanes":[[[0,7]]]}',
            "no device 7",
        ),
    ],
)
def test_a_variable_that_is_wrong_is_named(
    plan: Plan, name: str, value: str | None, says: str
) -> None:
    env = env_of(plan, 0)
    env.pop(name)
    if value is not None:
        env[name] = value
    with pytest.raises(ValueError, match=says):
        settings_from(env)


def test_a_wiring_survives_its_text() -> None:
    text = '{"nodes":["a","b"],"devices":[["x:2@10.0.0.1","y"],["z"]],"lanes":[[[1,0],[0,0]]]}'
    wiring = Wiring.from_json(text)
    assert wiring.to_json() == text
    assert wiring.devices[0][0].port == 2
    assert wiring.ends(1, 0) == ((0, 1), (0, 0))


def test_a_receipt_of_another_transport_contradicts_the_plan(plan: Plan) -> None:
    from tetraspark.line.engine_log import Line

    told = {"tetraspark": "tp_all_reduce", "rank": 0, "world": 4, "route": "engine"}
    (problem,) = wrong([Line(rank=0, text="", time=0.0, receipt=told)], plan)
    assert problem.wanted == "route 'verbs', as planned"
