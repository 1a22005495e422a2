"""A watch on a line of two ranks with a stand-in engine: what it sees, keeps and does."""

import io
import json
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.watch.stood_in import METRICS, StoodIn
from tetraspark.cli.status import watch_line
from tetraspark.fleet.process import labelled
from tetraspark.line.quiet import is_quiet, measuring
from tetraspark.watch.board import Board
from tetraspark.watch.observation import Observation
from tetraspark.watch.record import Act, Record
from tetraspark.watch.told import told_of
from tetraspark.watch.watch import Watch


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoodIn]:
    made = StoodIn(tmp_path_factory.mktemp("watched"))
    with made.served():
        yield made


@pytest.fixture(autouse=True)
def well(request: pytest.FixtureRequest) -> None:
    """Let the line of the module be well again, with a watch that has done nothing."""
    if "line" in request.fixturenames:
        made: StoodIn = request.getfixturevalue("line")
        made.behave()
        Record(made.store.root).served_by_hand()


def test_a_look_has_ranks_memory_engine_canary_and_versions(line: StoodIn) -> None:
    line.behave(metrics=METRICS.format(running=2, generated=100, prefilled=50))
    watch = line.watch([])
    line.looks(watch, 1)
    line.behave(metrics=METRICS.format(running=2, generated=200, prefilled=50))
    (found,) = line.looks(watch, 1)
    assert (found.state, found.line) == ("ready", "stood-in")
    assert [(one.rank, one.node, one.state) for one in found.ranks] == [
        (0, "node0", "running"),
        (1, "node1", "running"),
    ]
    assert all(one.operations == 7 for one in found.ranks)
    assert all(one.memory_available and one.page_cache for one in found.ranks)
    assert (found.engine.running, found.engine.kv_used) == (2, 0.25)
    assert found.history[-1] == (found.at, 10.0)
    assert found.canary is not None
    assert (found.canary.ok, found.canary.asked_at) == (True, found.at - 10)
    assert found.versions["engine"] == "0.5.23"


def test_canaries_are_asked_when_due_and_at_once_after_one_was_lost(line: StoodIn) -> None:
    watch = line.watch([])
    asked = [one.canary.asked_at for one in line.looks(watch, 9) if one.canary]
    assert len(set(asked)) == 2, "one now, one a minute later"
    line.wedge()
    line.clock.now += 60
    lost = [one.canary.asked_at for one in line.looks(watch, 3) if one.canary]
    assert len(set(lost)) == 3


def test_each_change_of_state_is_said_once(line: StoodIn) -> None:
    said: list[Observation] = []
    watch = line.watch(said)
    line.looks(watch, 3)
    line.behave(answer="no number")
    line.clock.now += 60
    line.looks(watch, 3)
    line.clock.now += 60
    line.looks(watch, 2)
    line.behave()
    line.clock.now += 60
    line.looks(watch, 1)
    assert [one.state for one in said] == ["ready", "degraded", "ready"]
    assert "'no number' is without '42'" in said[1].reason


def test_a_wedge_is_kept_once_with_everything(line: StoodIn) -> None:
    said: list[Observation] = []
    watch = line.watch(said)
    line.looks(watch, 1)
    line.wedge(running=3)
    line.tells(str(line.store.latest().id), 0, verdict="waiting", operations=12)  # type: ignore[union-attr] # served
    line.clock.now += 60
    found = line.looks(watch, 9)
    assert found[-1].state == "wedged"
    assert "3 requests run" in found[-1].reason
    (kept,) = [one for one in found[-1].findings if one.id == "WEDGE.KEPT"]
    (act,) = Record(line.store.root).acts()
    assert (act["done"], act["folder"] in kept.fix) == ("nothing", True)
    folder = Path(act["folder"])
    assert {one.name for one in folder.iterdir()} == {
        "stacks.txt",
        "metrics.txt",
        "observation.json",
        "support-bundle.tar.gz",
    }
    assert "stand_in_engine.py" in (folder / "stacks.txt").read_text()
    assert set(act["places"]) == {"0", "1"}
    assert "serve_forever" in act["places"]["0"] or "select" in act["places"]["0"]
    assert "(stand_in_engine.py" in act["places"]["1"]
    assert "num_running_reqs 3" in (folder / "metrics.txt").read_text()
    assert json.loads((folder / "observation.json").read_text())["state"] == "wedged"
    with tarfile.open(folder / "support-bundle.tar.gz") as bundle:
        names = [name.split("/", 1)[1] for name in bundle.getnames()]
    assert {"watch/stacks.txt", "line/rank0.log", "line/rank1.log", "site.toml"} <= set(names)
    # A second watch finds the record, and leaves it at that.
    line.looks(line.watch([]), 9)
    assert len(Record(line.store.root).acts()) == 1
    assert len(list(folder.parent.glob("wedge-*"))) == 1
    assert [one.state for one in said] == ["ready", "degraded", "wedged"]
    assert said[-1].rank == 1, "rank 0 waits in a collective, rank 1 is not there"


def test_evidence_without_the_key_known_says_so(line: StoodIn) -> None:
    """The key file was there when the watch began; a key that a log repeats is not taken out."""
    watched, gone = line.watched(), line.folder / "gone.key"
    site = watched.loaded.site
    site = site.model_copy(update={"api": site.api.model_copy(update={"key_file": str(gone)})})
    watched = replace(watched, loaded=replace(watched.loaded, site=site))
    watch = Watch(watched, Board(), lambda found: None, 10.0, line.clock, line.wall)
    line.looks(watch, 1)
    line.wedge()
    line.clock.now += 60
    found = line.looks(watch, 9)[-1]
    (act,) = Record(line.store.root).acts()
    assert act["unread"]["name"] == str(gone)
    (told,) = [one for one in found.findings if one.id == "WEDGE.KEY"]
    assert told.where == str(gone) and "a key that a text repeats is not known" in told.observed
    assert act["folder"] in told.fix
    with tarfile.open(Path(act["folder"]) / "support-bundle.tar.gz") as bundle:
        (name,) = [name for name in bundle.getnames() if name.endswith("/index.json")]
        index = json.load(bundle.extractfile(name) or io.BytesIO())
    assert str(gone) in {one["name"] for one in index["missing"]}
    assert f"key not known: {gone}: " in watch_line(told_of(line.store.root))


def test_a_clock_that_is_set_changes_no_state(line: StoodIn) -> None:
    said: list[Observation] = []
    watch = line.watch(said)
    for jump in (0.0, 1e9, -2e9, 3e7):
        line.wall.now += jump
        found = line.looks(watch, 3)
        assert found[-1].since <= found[-1].at == line.wall.now
    assert [one.state for one in said] == ["ready"]
    assert found[-1].at - found[-1].since == pytest.approx(110)


def test_frozen_and_continued_is_degraded_and_ready_again(line: StoodIn) -> None:
    said: list[Observation] = []
    watch = line.watch(said)
    line.looks(watch, 1)
    line.signal(1, signal.SIGSTOP)
    try:
        line.looks(watch, 3)
    finally:
        line.signal(1, signal.SIGCONT)
    line.looks(watch, 1)
    assert [(one.state, one.rank) for one in said] == [
        ("ready", None),
        ("degraded", 1),
        ("ready", None),
    ]


def test_a_rank_that_runs_half_of_the_time_is_never_a_wedge(line: StoodIn) -> None:
    """What cpulimit does: SIGSTOP and SIGCONT in turn, while tokens still come."""
    watch = line.watch([])
    states = set()
    for turn in range(12):
        line.behave(metrics=METRICS.format(running=1, generated=turn, prefilled=50))
        line.signal(1, signal.SIGSTOP if turn % 2 else signal.SIGCONT)
        states.add(line.looks(watch, 1)[0].state)
    line.signal(1, signal.SIGCONT)
    assert states == {"ready"}


def test_nobody_looks_while_a_suite_measures(line: StoodIn) -> None:
    watch = line.watch([])
    with measuring(line.store.root), measuring(line.store.root):
        assert is_quiet(line.store.root)
        line.clock.now += 10
        assert watch.look() is None
        assert told_of(line.store.root)["quiet"]
    assert not is_quiet(line.store.root)
    assert watch.look() is not None


def test_a_full_disk_ends_no_watch_and_is_told(tmp_path: Path) -> None:
    state = tmp_path / "small"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", state], check=True)
    try:
        line = StoodIn(tmp_path, 'on_wedge = "restart-once"', state)
        with line.served() as run:
            watch = line.watch([])
            line.looks(watch, 1)
            with (state / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
                while True:
                    filler.write(b"x" * 512)
            line.wedge()
            found = line.looks(watch, 9)
            assert found[-1].state == "wedged"
            assert {"WATCH.RECORD"} <= {one.id for one in found[-1].findings}
            restarts = [watch.restart]
            (state / "filler").unlink()
            line.looks(watch, 2)
            assert [*restarts, watch.restart] == [None, "restart-once"], "recorded first, then done"
            assert Record(line.store.root).acts()[0]["run"] == run
    finally:
        subprocess.run(["umount", state], check=True)


def test_on_wedge_stop_ends_the_line_and_the_watch(tmp_path: Path) -> None:
    line = StoodIn(tmp_path, 'on_wedge = "stop"')
    with line.served():
        watch = line.watch([])
        line.looks(watch, 1)
        line.wedge()
        line.looks(watch, 6)
        assert labelled(line.store.root) == []
        watch.run(until_stopped=True)
    said = told_of(line.store.root)
    assert (said["state"], said["reason"], said["pid"]) == ("down", "stopped", None)
    (act,) = said["acts"]
    assert (act["done"], act["why"]) == ("stop", 'on_wedge = "stop"')


def test_a_line_that_was_restarted_is_left_as_it_is(tmp_path: Path) -> None:
    line = StoodIn(tmp_path, 'on_wedge = "restart-once"')
    earlier = Act(0.0, "earlier", "no token", 1, "restart-once", "", "/x", {})
    with line.served():
        Record(line.store.root).add(earlier)
        watch = line.watch([])
        line.looks(watch, 1)
        line.wedge()
        found = line.looks(watch, 6)
    assert watch.restart is None
    (kept,) = [one for one in found[-1].findings if one.id == "WEDGE.KEPT"]
    assert "done: nothing (restarted before, and failed again" in kept.observed


def test_a_changed_site_file_is_not_served_by_a_restart(tmp_path: Path) -> None:
    line = StoodIn(tmp_path, 'on_wedge = "restart-once"')
    with line.served():
        watch = line.watch([])
        line.looks(watch, 1)
        line.site.write_text(line.site.read_text().replace("kv_tokens = 4096", "kv_tokens = 2048"))
        line.wedge()
        line.looks(watch, 6)
    assert watch.restart is None
    (act,) = Record(line.store.root).acts()
    assert act["done"] == "nothing"
    assert act["why"].startswith("the site file is not what this run was served from")
