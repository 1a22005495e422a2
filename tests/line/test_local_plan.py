import dataclasses
import json
import shlex
from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.fleet.runner import Inventory
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.site.flags import OWNED_FLAGS
from tetraspark.site.load import LoadedSite, load_site


def flag(plan: Plan, rank: int, name: str) -> str:
    argv = plan.ranks[rank].argv
    assert argv.count(name) == 1, f"{name} stands {argv.count(name)} times"
    return argv[argv.index(name) + 1]


def test_each_rank_is_a_node_with_its_own_rank_and_port(plan: Plan) -> None:
    assert [command.node for command in plan.ranks] == ["node0", "node1", "node2", "node3"]
    assert [flag(plan, rank, "--node-rank") for rank in range(4)] == ["0", "1", "2", "3"]
    assert [flag(plan, rank, "--port") for rank in range(4)] == ["30000", "1", "2", "3"]
    assert {flag(plan, rank, "--dist-init-addr") for rank in range(4)} == {"127.0.0.1:4"}
    assert {flag(plan, rank, "--nnodes") for rank in range(4)} == {"4"}
    assert plan.url == "http://127.0.0.1:30000/v1"


def test_port_zero_takes_a_free_one(local_site: LoadedSite, inventory: Inventory) -> None:
    site = local_site.site.model_copy(
        update={"api": local_site.site.api.model_copy(update={"port": 0})}
    )
    plan = local_plan(dataclasses.replace(local_site, site=site), inventory)
    assert plan.port == 31000
    assert flag(plan, 0, "--port") == "31000"


def test_a_plan_is_a_value(local_site: LoadedSite, inventory: Inventory, plan: Plan) -> None:
    assert local_plan(local_site, inventory) == plan
    assert json.loads(json.dumps(plan.as_dict()))["ranks"][3]["node"] == "node3"


def test_the_model_path_starts_at_the_site_file(plan: Plan) -> None:
    root = Path(__file__).parents[2]
    assert flag(plan, 0, "--model-path") == str(root / "models" / "tiny")


def test_one_omp_binding_a_rank_and_only_absent_modules_stood_in(plan: Plan) -> None:
    env = dict(plan.ranks[0].env)
    assert env["SGLANG_CPU_OMP_THREADS_BIND"] == "0|1|0|1"
    assert env["PYTHONPATH"].endswith("/standins/triton")
    assert ":" not in env["PYTHONPATH"]


def test_no_stand_ins_no_path(local_site: LoadedSite, inventory: Inventory) -> None:
    plan = local_plan(local_site, dataclasses.replace(inventory, standins=()))
    assert "PYTHONPATH" not in dict(plan.ranks[0].env)


def test_every_setting_has_an_origin_and_file_values_a_line(
    plan: Plan, local_site: LoadedSite
) -> None:
    assert all(setting.origin.where for setting in plan.settings)
    tp = next(setting for setting in plan.settings if setting.name == "--tp-size")
    text = local_site.path.read_text().splitlines()
    assert tp.origin.kind == "file"
    assert text[int(tp.origin.where.rsplit(":", 1)[1]) - 1] == "tp = 4"


def test_no_variable_is_empty_and_each_flag_stands_once(plan: Plan) -> None:
    for command in plan.ranks:
        assert all(value for _, value in command.env)
        flags = [word for word in command.argv if word.startswith("--")]
        assert len(flags) == len(set(flags))


def test_flags_rendered_from_keys_are_flags_that_a_site_may_not_repeat(plan: Plan) -> None:
    from_file = [one for one in plan.settings if one.kind == "flag" and one.origin.kind == "file"]
    assert len(from_file) > 5
    assert all(setting.name in OWNED_FLAGS for setting in from_file)


def test_extra_args_and_env_come_last_word_by_word(tmp_path: Path, inventory: Inventory) -> None:
    text = (Path(__file__).parents[2] / "sites" / "local.toml").read_text()
    words = ["--json-model-override-args", '{"a":1,"b":2}']
    text = text.replace("tp = 4\n", f"tp = 4\nextra_args = ['{words[0]}', '{words[1]}']\n")
    file = tmp_path / "site.toml"
    file.write_text(text + '\n[env]\nOMP_WAIT_POLICY = "passive # really"\n')
    plan = local_plan(load_site(file), inventory)
    assert plan.ranks[0].argv[-2:] == tuple(words)
    assert plan.ranks[0].env[-1] == ("OMP_WAIT_POLICY", "passive # really")
    assert shlex.split(str(plan.ranks[0]))[-2:] == words


def test_only_the_path_of_the_key_travels_and_only_to_the_head(
    tmp_path: Path, inventory: Inventory
) -> None:
    text = (Path(__file__).parents[2] / "sites" / "local.toml").read_text()
    (tmp_path / "key").write_text("very-secret\n")
    file = tmp_path / "site.toml"
    file.write_text(text.replace("port = 30000", 'port = 30000\nkey_file = "key"'))
    plan = local_plan(load_site(file), inventory)
    assert dict(plan.ranks[0].env)["TETRASPARK_API_KEY_FILE"] == str(tmp_path / "key")
    assert all("TETRASPARK_API_KEY_FILE" not in dict(command.env) for command in plan.ranks[1:])
    assert "very-secret" not in json.dumps(plan.as_dict())


@pytest.mark.parametrize("engine", [None, "0.5.22"])
def test_another_engine_is_refused(
    local_site: LoadedSite, inventory: Inventory, engine: str | None
) -> None:
    with pytest.raises(UsageError, match=r"wanted: sglang 0\.5\.23"):
        local_plan(local_site, dataclasses.replace(inventory, engine=engine))
