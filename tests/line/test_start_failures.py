"""Starts that fail, with the real engine: each says which rank and why, and leaves nothing."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import ROOT, Command, eventually, write_site
from tetraspark.fleet.process import labelled

pytestmark = pytest.mark.engine


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    for process in labelled(folder):
        os.kill(process.pid, signal.SIGKILL)


def test_a_model_the_engine_cannot_load_is_told_in_its_words(tmp_path: Path, state: Path) -> None:
    model = shutil.copytree(ROOT / "models" / "tiny", tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    config["num_attention_heads"] = 5
    (model / "config.json").write_text(json.dumps(config))
    swaps = {'"../models/tiny"': f'"{model}"'}
    line = Command(write_site(tmp_path, "badmodel", swaps, ranks=2), state)
    result = line.run("serve", "--json")
    assert result.returncode == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem["where"].startswith("rank ")
    assert "Error" in problem["seen"]
    assert problem["fix"].startswith("tetraspark logs ")
    assert labelled(state) == []
    status = line.json("status")
    assert status["verdict"] == "down"
    assert status["reason"].startswith("the start failed: rank ")


def test_a_phase_that_takes_too_long_names_phase_time_rank_and_line(
    tmp_path: Path, state: Path
) -> None:
    swaps = {"port = 30000": "port = 0\n\n[deadlines]\nimport_seconds = 3"}
    line = Command(write_site(tmp_path, "late", swaps), state)
    result = line.run("serve", "--json")
    assert result.returncode == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert "phase import not over after 3 s, last line: " in problem["seen"]
    assert "deadlines.import_seconds" in problem["fix"]
    assert labelled(state) == []


def test_stop_ends_a_start_whose_launcher_crashed(tmp_path: Path, state: Path) -> None:
    line = Command(write_site(tmp_path, "crashed"), state)
    with subprocess.Popen(
        line.argv("serve"), env=line.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as launcher:
        assert eventually(lambda: {one.rank for one in labelled(state)} == {0, 1, 2, 3}, 30)
        launcher.kill()
    assert len(labelled(state)) >= 8
    status = line.json("status")
    assert status["verdict"] == "degraded"
    assert "the launcher" in status["reason"]
    assert line.run("stop").returncode == 0
    assert labelled(state) == []


def test_a_rank_killed_during_the_start_ends_it_with_that_rank(tmp_path: Path, state: Path) -> None:
    line = Command(write_site(tmp_path, "killed"), state)
    with subprocess.Popen(
        line.argv("serve", "--json"), env=line.env, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert eventually(lambda: {one.rank for one in labelled(state)} == {0, 1, 2, 3}, 30)
        victim = next(one for one in labelled(state) if one.rank == 3 and not one.leads)
        os.kill(victim.pid, signal.SIGKILL)
        text = launcher.communicate(timeout=60)[0]
    assert launcher.returncode == 1
    (problem,) = json.loads(text)["problems"]
    assert problem["where"] == "rank 3 (node3)"
    assert "killed by signal 9" in problem["seen"]
    assert labelled(state) == []


@pytest.mark.parametrize("processes", [1, 8])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_start_that_is_cut_off_leaves_nothing(
    tmp_path: Path, state: Path, number: signal.Signals, code: int, processes: int
) -> None:
    """As soon as one process of it lives, and with all of them up."""
    line = Command(write_site(tmp_path, "interrupted"), state)
    with subprocess.Popen(
        line.argv("serve"), env=line.env, stderr=subprocess.PIPE, text=True
    ) as launcher:
        assert eventually(lambda: len(labelled(state)) >= processes, 30)
        launcher.send_signal(number)
        text = launcher.communicate(timeout=60)[1]
    assert launcher.returncode == code
    assert "Traceback" not in text
    assert labelled(state) == []
    assert line.json("status")["phase"] == "failed"


def test_a_flag_the_engine_does_not_know_is_told_in_its_words(tmp_path: Path, state: Path) -> None:
    swaps = {"kv_tokens = 8192": 'kv_tokens = 8192\nextra_args = ["--bogus-flag", "7"]'}
    line = Command(write_site(tmp_path, "bogus", swaps, ranks=2), state)
    (problem,) = json.loads(line.run("serve", "--json").stdout)["problems"]
    assert "unrecognized arguments: --bogus-flag 7" in problem["seen"]


def test_a_drifted_engine_refuses_to_serve(tmp_path: Path, state: Path) -> None:
    from tests.engine.shadow import shadow_engine
    from tetraspark.errors import RunError
    from tetraspark.fleet.local import LocalRunner
    from tetraspark.line.local_plan import local_plan
    from tetraspark.line.run import RunStore
    from tetraspark.line.serve import serve
    from tetraspark.site.load import load_site

    shadow = shadow_engine(
        tmp_path / "shadow",
        "srt/distributed/parallel_state.py",
        "            if is_shm_available(input_.dtype, self.world_size, self.local_size):\n"
        "                torch.ops.sgl_kernel.shm_allreduce(input_, REDUCE_OP_SUM)",
        "            if is_shm_available(input_.dtype, self.world_size, self.local_size):\n"
        "                torch.ops.sgl_kernel.shm_allreduce(input_, REDUCE_OP_SUM + 0)",
    )
    loaded = load_site(write_site(tmp_path, "drifted", ranks=2))
    runner, store = LocalRunner(), RunStore("drifted", state)
    plan = local_plan(loaded, runner.inventory(2))
    ranks = []
    for command in plan.ranks:
        env = dict(command.env)
        env["PYTHONPATH"] = f"{shadow}:{env['PYTHONPATH']}"
        ranks.append(dataclasses.replace(command, env=tuple(env.items())))
    plan = dataclasses.replace(plan, ranks=tuple(ranks))
    with pytest.raises(RunError) as caught:
        serve(loaded, plan, None, runner, store, False, lambda progress: None)
    assert "GroupCoordinator.all_reduce" in str(caught.value)
    assert "re-check src/tetraspark/engine/scheduler.py" in str(caught.value)
    assert labelled(state) == []
