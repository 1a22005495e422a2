"""What the engine says it runs with is compared with the plan, on its own recorded words."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tetraspark.errors import RunError
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.port import free_ports
from tetraspark.fleet.process import labelled
from tetraspark.fleet.rank import RankCommand
from tetraspark.fleet.runner import Inventory
from tetraspark.line.effective import differences, read_effective
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.line.run import RunStore
from tetraspark.line.serve import serve
from tetraspark.line.status import read_status
from tetraspark.site.load import LoadedSite, load_site, load_source
from tetraspark.site.source import decode_source

FOLDER = Path(__file__).parent
SITES = FOLDER.parents[1] / "sites"
# Recorded from sglang 0.5.23 on four CPU ranks serving sites/local.toml.
RECORDED = (FOLDER / "server_info" / "cpu-0.5.23.json").read_text()
SWITCH = SITES / "four-sparks-switch.toml"


@pytest.fixture
def info(plan: Plan) -> dict[str, Any]:
    """The recorded engine's words, with the addresses and the folder of this plan."""
    told: dict[str, Any] = json.loads(RECORDED)
    flags = {one.name: one.value for one in plan.settings if one.rank in (None, 0)}
    port = int(flags["--port"] or 0)
    address = {"dist_init_addr": flags["--dist-init-addr"], "port": port}
    return told | address | {"model_path": flags["--model-path"]}


def test_the_real_engine_runs_with_what_the_local_site_plans(
    plan: Plan, info: dict[str, Any]
) -> None:
    found = read_effective(plan, info)
    assert [one.setting for one in found if not one.same] == []
    assert differences(plan, found) == []
    keys = {one.key for one in found}
    assert keys >= {
        "served_model_name",
        "tp_size",
        "ep_size",
        "context_length",
        "max_running_requests",
        "effective_max_running_requests_per_dp",
        "max_total_tokens",
        "max_total_num_tokens",
        "mem_fraction_static",
        "host",
        "port",
        "nnodes",
        "node_rank",
        "device",
        "attention_backend",
    }


@pytest.mark.parametrize(
    ("key", "value", "line", "fix"),
    [
        ("tp_size", 2, "tp = 4", "set engine.tp = 2, or "),
        ("context_length", 1024, "context_length = 4096", "set engine.context_length = 1024, or "),
        ("max_running_requests", 4, "max_running_requests", "set engine.max_running_requests = 4"),
        ("max_total_num_tokens", 2048, "kv_tokens = 8192", "set engine.kv_tokens = 2048, or "),
        ("max_total_num_tokens", None, "kv_tokens = 8192", "see in its log"),
        ("mem_fraction_static", 0.45, "mem_fraction = 0.5", "set engine.mem_fraction = 0.45"),
        ("served_model_name", "other", 'served_name = "tiny"', "see in its log why"),
    ],
)
def test_a_difference_names_key_value_line_and_fix(
    plan: Plan, info: dict[str, Any], key: str, value: object, line: str, fix: str
) -> None:
    (problem,) = differences(plan, read_effective(plan, info | {key: value}))
    text = (SITES / "local.toml").read_text()
    assert problem.where == f"{SITES}/local.toml:{text[: text.index(line)].count(chr(10)) + 1}"
    assert f"is {value!r} in the running engine ({key} in /server_info)" in problem.seen
    assert problem.wanted.endswith(", as planned")
    assert problem.fix.startswith(fix)
    assert "tetraspark logs 0" in problem.fix


def test_the_scheduler_may_allow_fewer_requests_than_the_arguments(
    plan: Plan, info: dict[str, Any]
) -> None:
    info["internal_states"][0]["effective_max_running_requests_per_dp"] = 3
    (problem,) = differences(plan, read_effective(plan, info))
    assert "`engine.max_running_requests` (--max-running-requests) is 3" in problem.seen


@pytest.mark.parametrize(("short", "told"), [(0, 0), (255, 0), (256, 1), (-1, 1)])
def test_a_pool_is_cut_to_whole_pages_and_no_further(
    plan: Plan, info: dict[str, Any], short: int, told: int
) -> None:
    changed = info | {"page_size": 256, "max_total_num_tokens": 8192 - short}
    assert len(differences(plan, read_effective(plan, changed))) == told


def test_a_value_of_ours_is_told_without_a_key_of_the_site(
    plan: Plan, info: dict[str, Any]
) -> None:
    (problem,) = differences(plan, read_effective(plan, info | {"device": "cuda"}))
    assert (problem.where, problem.wanted) == ('kind = "local"', "cpu, as planned")
    assert problem.seen.startswith("`--device` is 'cuda'")


def test_a_key_that_the_engine_does_not_repeat_is_not_judged(plan: Plan) -> None:
    assert read_effective(plan, {}) == []
    assert read_effective(plan, {"internal_states": []}) == []


def five_drafts() -> Plan:
    text = SWITCH.read_text().replace("block_size = 3", "block_size = 5")
    return fleet_plan(load_source(decode_source(SWITCH, text.encode())))


def test_a_block_size_of_the_checkpoint_is_seen_in_either_key() -> None:
    plan = five_drafts()
    told = {
        "speculative_algorithm": "DSPARK",
        "speculative_dspark_block_size": 5,
        "speculative_num_draft_tokens": 6,
        "chunked_prefill_size": 1024,
    }
    assert differences(plan, read_effective(plan, told)) == []
    block, window = differences(
        plan,
        read_effective(
            plan,
            told | {"speculative_dspark_block_size": 3, "speculative_num_draft_tokens": 4},
        ),
    )
    line = SWITCH.read_text()[: SWITCH.read_text().index("block_size = 3")].count("\n") + 1
    assert block.where == window.where == f"{SWITCH}:{line}"
    assert "`speculative.block_size` (--speculative-dspark-block-size) is 3" in block.seen
    assert "is 4 in the running engine (speculative_num_draft_tokens in" in window.seen
    assert block.fix.startswith("set speculative.block_size = 3, or ")
    assert window.fix.startswith("set speculative.block_size = 3, or ")


@pytest.mark.parametrize("folder", ["four-sparks-switch", "four-sparks-ring"])
def test_the_head_of_a_fleet_is_compared_with_its_own_share_of_memory(folder: str) -> None:
    plan = fleet_plan(load_site(SITES / f"{folder}.toml"))
    found = read_effective(plan, {"mem_fraction_static": 0.8, "node_rank": 0})
    assert [one.same for one in found] == [True, True]


class Served:
    """A line of one rank, whose engine is a stand-in that tells what it is given."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.loaded = self._site(folder, port)
        self.store, self.runner = RunStore("stood-in", folder / "state"), LocalRunner()
        self.plan = local_plan(
            self.loaded, Inventory(sys.executable, "0.5.23", (0,), (), (port, 29500))
        )
        self.behaviour = folder / "behaviour.json"
        flags = ("--port", str(port), "--model-path", str(folder))
        argv = (sys.executable, str(FOLDER / "stand_in_engine.py"), *flags)
        command = RankCommand(0, "node0", argv, (), port)
        self.plan = dataclasses.replace(self.plan, ranks=(command,))

    @staticmethod
    def _site(folder: Path, port: int) -> LoadedSite:
        file = folder / "site.toml"
        model = SITES.parent / "models" / "tiny"
        file.write_text(
            f'name = "stood-in"\nkind = "local"\nnodes = [{{ name = "node0" }}]\n'
            f'[model]\npath = "{model}"\nserved_name = "tiny"\ncanary = {{ prompt = "6 x 7" }}\n'
            f"[engine]\ntp = 1\nkv_tokens = 4096\n[api]\nport = {port}\n"
        )
        return load_site(file)

    def serve(self, **told: object) -> Any:
        self.behaviour.write_text(json.dumps({"told": told}))
        return serve(
            self.loaded, self.plan, None, self.runner, self.store, False, lambda progress: None
        )

    def status(self) -> Any:
        canary = self.loaded.site.model.canary
        return read_status("stood-in", self.runner, self.store, None, canary, 5)


def test_a_start_fails_when_the_engine_runs_with_another_value(tmp_path: Path) -> None:
    line = Served(tmp_path)
    with pytest.raises(RunError) as caught:
        line.serve(tp_size=1, max_total_num_tokens=2048)
    (problem,) = caught.value.problems
    assert problem.where == f"{tmp_path}/site.toml:10"
    assert "`engine.kv_tokens` (--max-total-tokens) is 2048" in problem.seen
    assert labelled(tmp_path / "state") == []
    status = line.status()
    assert (status.verdict, status.phase) == ("down", "failed")
    assert {one["key"]: one["same"] for one in status.effective} == {
        "tp_size": True,
        "max_total_num_tokens": False,
    }


def test_a_start_keeps_what_the_engine_runs_with(tmp_path: Path) -> None:
    line = Served(tmp_path)
    try:
        served = line.serve(tp_size=1, api_key="never kept")
        status = line.status()
    finally:
        line.runner.stop(line.store.root, 5, ())
    assert status.verdict == "ready"
    assert status.effective == [
        {
            "setting": "--tp-size",
            "planned": "1",
            "key": "tp_size",
            "value": 1,
            "where": f"{tmp_path}/site.toml:9",
            "same": True,
        }
    ]
    kept = (line.store.root / served.run / "effective.json").read_text()
    assert json.loads(kept) == status.effective


def test_a_damaged_record_is_told_by_its_name(tmp_path: Path, plan: Plan) -> None:
    run = RunStore("mine", tmp_path).create(plan)
    assert run.effective() is None
    (run.folder / "effective.json").write_text("{")
    with pytest.raises(RunError, match=r"effective\.json: damaged: Invalid JSON"):
        run.effective()
