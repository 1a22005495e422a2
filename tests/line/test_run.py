import json
import multiprocessing
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tetraspark.errors import RunError
from tetraspark.fleet import file_lock
from tetraspark.fleet.state_home import state_home
from tetraspark.line.plan import Plan
from tetraspark.line.run import KEPT_RUNS, Run, RunStore


def test_a_run_is_on_disk_before_anything_starts(tmp_path: Path, plan: Plan) -> None:
    store = RunStore("local", tmp_path)
    run = store.create(plan)
    assert store.latest() == run
    assert run.read()["phase"] == "start"
    assert run.plan()["ranks"][2]["node"] == "node2"
    assert run.folder.stat().st_mode & 0o777 == 0o700


def test_the_newest_run_is_the_latest(tmp_path: Path, plan: Plan) -> None:
    store = RunStore("local", tmp_path)
    for name in ("20260101-000000-900000", "20261231-000000-000000", "20260601-000000-5"):
        folder = store.root / name
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text("{}")
    latest = store.latest()
    assert latest is not None
    assert latest.id == "20261231-000000-000000"


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(0), timedelta(days=9000)])
def test_a_clock_that_was_set_back_makes_no_older_run(
    tmp_path: Path, plan: Plan, back: timedelta
) -> None:
    """The receipts of runs sort as they do, and only the oldest runs are forgotten."""
    store = RunStore("local", tmp_path)
    now = datetime(2026, 12, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    first = store.create(plan, now)
    others = [store.create(plan, now - back + timedelta(minutes=one)) for one in range(KEPT_RUNS)]
    assert store.runs() == others
    assert store.latest() == others[-1]
    assert not first.folder.exists()
    assert {len(one.id) for one in others} == {len("20261201-235959-999999")}


def test_a_line_never_served_has_no_run(tmp_path: Path) -> None:
    assert RunStore("local", tmp_path).latest() is None


def test_records_are_merged(tmp_path: Path, plan: Plan) -> None:
    run = RunStore("local", tmp_path).create(plan)
    run.record(phase="load", since=1.0)
    run.record(phase="ready")
    assert run.read()["phase"] == "ready"
    assert run.read()["since"] == 1.0


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_a_damaged_run_is_told_not_raised(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    (tmp_path / "plan.json").write_text(text)
    assert Run(tmp_path).read() == {"phase": "unknown"}
    with pytest.raises(RunError, match=r"plan\.json"):
        Run(tmp_path).plan()


def _hold(root: Path, held: Event, release: Event) -> None:
    with RunStore("local", root).lock():
        held.set()
        release.wait(30)


def test_one_launcher_at_a_time_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, held, release))
    other.start()
    assert held.wait(30)
    with (
        pytest.raises(RunError, match="one launcher at a time"),
        RunStore("local", tmp_path).lock(),
    ):
        pass
    other.kill()
    other.join()
    with RunStore("local", tmp_path).lock():
        pass


def test_the_state_folder_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_home() == tmp_path / "xdg" / "tetraspark"
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "own"))
    assert state_home() == tmp_path / "own"


def test_state_is_json_for_programs(tmp_path: Path, plan: Plan) -> None:
    run = RunStore("local", tmp_path).create(plan)
    assert json.loads((run.folder / "plan.json").read_text())["url"] == plan.url


def _stop_and_on(folder: Path, ready: Event, go: Event) -> None:
    ready.set()
    go.wait(30)
    for number in range(200):
        Run(folder).record(**{f"other{number}": number})
    Run(folder).record(phase="stopped")


def test_writers_of_a_state_lose_nothing_of_each_other_and_a_stop_stays(
    tmp_path: Path, plan: Plan
) -> None:
    """A start goes on recording its phases while another command stops it."""
    run = RunStore("local", tmp_path).create(plan)
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    other = context.Process(target=_stop_and_on, args=(run.folder, ready, go))
    other.start()
    assert ready.wait(30)
    go.set()
    number = 0
    while run.advance("load", **{f"own{number}": number}):
        number += 1
    other.join(30)
    assert (other.exitcode, run.read()["phase"]) == (0, "stopped")
    assert {f"other{one}" for one in range(200)} <= set(run.read())
    assert {f"own{one}" for one in range(number)} <= set(run.read())
    assert not run.advance("ready")


def test_a_frozen_writer_is_not_waited_for(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunStore("local", tmp_path).create(plan)
    monkeypatch.setattr("tetraspark.line.run.TURN_SECONDS", 0.1)
    with (run.folder / "state.lock").open("a+") as file:
        file_lock.take(file)
        run.record(phase="stopped")
    assert run.is_stopped()
