import json
import shlex
from pathlib import Path

import pytest

from tests.line.docker_env import env_of
from tetraspark.fleet.login import Login
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.launch import Launch, NodeLaunch
from tetraspark.line.plan import Plan
from tetraspark.site.load import load_site
from tetraspark.weights.mount import bind

SITES = Path(__file__).parents[2] / "sites"


@pytest.fixture(params=["four-sparks-switch", "four-sparks-ring"])
def plan(request: pytest.FixtureRequest) -> Plan:
    return fleet_plan(load_site(SITES / f"{request.param}.toml"))


def test_one_container_a_node_in_the_order_of_the_site(plan: Plan) -> None:
    for rank, command in enumerate(plan.ranks):
        assert command.argv[:2] == ("docker", "run")
        assert f"--name=tetraspark-{plan.line}-r{rank}" in command.argv
        assert command.argv[command.argv.index("--node-rank") + 1] == str(rank)
        assert env_of(plan, rank)["TETRASPARK_RANK"] == str(rank)


def test_a_container_has_what_rdma_needs(plan: Plan) -> None:
    wanted = {"--network=host", "--device=/dev/infiniband", "--cap-add=IPC_LOCK"}
    assert wanted | {"--ulimit=memlock=-1"} <= set(plan.ranks[0].argv)


def test_devices_are_rendered_exact_for_nccl(plan: Plan) -> None:
    hca = env_of(plan, 0)["NCCL_IB_HCA"]
    assert hca.startswith("=")
    assert " " not in hca


def test_no_variable_is_empty_and_no_gid_index_is_guessed(plan: Plan) -> None:
    for rank in range(4):
        env = env_of(plan, rank)
        assert all(env.values())
        assert "NCCL_IB_GID_INDEX" not in env
        assert "NCCL_SOCKET_IFNAME" not in env
    at_launch = {one.name: one.origin.where for one in plan.settings if one.value is None}
    assert at_launch["GLOO_SOCKET_IFNAME"] == "resolved on each node at launch"


def test_each_engine_flag_stands_once_and_commands_survive_a_shell(plan: Plan) -> None:
    for command in plan.ranks:
        engine = command.argv[command.argv.index("sglang.launch_server") :]
        flags = [word for word in engine if word.startswith("--")]
        assert len(flags) == len(set(flags))
        assert shlex.split(str(command)) == list(command.argv)


def test_the_head_may_have_its_own_memory_fraction(tmp_path: Path) -> None:
    text = (SITES / "four-sparks-switch.toml").read_text()
    lines = [line for line in text.splitlines() if "mem_fraction" not in line]
    at = lines.index("[engine]") + 1
    lines[at:at] = ["mem_fraction = 0.8", "head_mem_fraction = 0.75"]
    file = tmp_path / "site.toml"
    file.write_text("\n".join(lines))
    plan = fleet_plan(load_site(file))
    argvs = [command.argv for command in plan.ranks]
    found = [argv[argv.index("--mem-fraction-static") + 1] for argv in argvs]
    assert found == ["0.75", "0.8", "0.8", "0.8"]


def test_a_fleet_plan_is_json(plan: Plan) -> None:
    assert json.loads(json.dumps(plan.as_dict()))["kind"] == "fleet"


def test_the_key_is_mounted_into_the_heads_container_alone(tmp_path: Path) -> None:
    text = (SITES / "four-sparks-switch.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("key_file")]
    lines.insert(lines.index("[api]") + 1, 'key_file = "api.key"')
    file = tmp_path / "site.toml"
    file.write_text("\n".join(lines))
    plan = fleet_plan(load_site(file))
    mounts = [
        [word for word in command.argv if word.startswith("type=bind") and "api-key" in word]
        for command in plan.ranks
    ]
    source = "~/.local/state/tetraspark/four-sparks-switch/node/api-key"
    wanted = f"type=bind,source={source},target=/run/tetraspark/api-key,readonly"
    assert mounts == [[wanted], [], [], []]
    assert str(tmp_path / "api.key") not in json.dumps(plan.as_dict()["ranks"])
    assert env_of(plan, 0)["TETRASPARK_API_KEY_FILE"] == "/run/tetraspark/api-key"


def test_the_heads_health_check_knows_where_the_api_listens(plan: Plan) -> None:
    assert env_of(plan, 0)["TETRASPARK_API"] == f"http://127.0.0.1:{plan.port}"
    assert "TETRASPARK_API" not in env_of(plan, 1)


def launch(plan: Plan) -> Launch:
    return Launch(
        tuple(
            NodeLaunch(
                node=command.node,
                home=f"/home/user{command.rank}",
                address=f"10.0.0.{command.rank + 1}",
                interface=f"eth{command.rank}",
                gids=(),
                env={"GLOO_SOCKET_IFNAME": f"eth{command.rank}", "NCCL_IB_HCA": "=one"},
                paths={},
            )
            for command in plan.ranks
        )
    )


@pytest.mark.parametrize("name", ["four-sparks-switch", "four-sparks-ring"])
def test_at_launch_each_rank_has_the_values_of_its_own_node(name: str) -> None:
    loaded = load_site(SITES / f"{name}.toml")
    plan = fleet_plan(loaded, launch(fleet_plan(loaded)))
    for rank, command in enumerate(plan.ranks):
        assert env_of(plan, rank)["GLOO_SOCKET_IFNAME"] == f"eth{rank}"
        assert env_of(plan, rank)["NCCL_IB_HCA"] == "=one"
        assert not [word for word in command.argv if "=~" in word]
        # Workers of the switch site mount the head's export, each through its own volume.
        if loaded.site.weights and loaded.site.weights.mode == "nfs" and rank:
            source = "source=tetraspark-four-sparks-switch-weights"
            model = f"type=volume,{source},target=/model,volume-nocopy"
        else:
            model = f"type=bind,source=/home/user{rank}/models/DeepSeek-V4.1-Flash,target=/model"
        assert f"{model},readonly" in command.argv
        assert command.argv[command.argv.index("--dist-init-addr") + 1] == "10.0.0.1:20000"
        names = [word.split("=")[0] for word in command.argv if word.startswith("NCCL_IB_HCA=")]
        assert names == ["NCCL_IB_HCA"]


def test_a_path_with_a_comma_is_one_field_of_a_mount() -> None:
    assert bind("/a,b", "/model") == ("--mount", 'type=bind,"source=/a,b",target=/model,readonly')


def test_a_plan_says_how_its_nodes_are_reached(plan: Plan) -> None:
    logins = plan.as_dict()["logins"]
    assert isinstance(logins, list)
    assert [Login.of(one) for one in logins] == list(plan.logins)
    assert [login.node for login in plan.logins] == [command.node for command in plan.ranks]
