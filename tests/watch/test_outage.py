"""Ranks that end by themselves while the line should serve: kept and acted on, once."""

import signal
import tarfile
from pathlib import Path

import pytest

from tests.watch.looks import STEP, look, rank, ranks
from tests.watch.stood_in import StoodIn
from tetraspark.line.stop import mark_stopped
from tetraspark.site.watch import OnWedge
from tetraspark.watch.act import restart_words
from tetraspark.watch.judge import ended
from tetraspark.watch.record import Act, Record

GONE = (*ranks()[:3], rank(3, state="exited", detail="killed by signal 9"))


def test_a_rank_has_ended_once_two_looks_have_seen_it() -> None:
    assert not ended([look(0, ranks=GONE)])
    assert not ended([look(0), look(STEP, ranks=GONE)])
    assert ended([look(0), look(STEP, ranks=GONE), look(2 * STEP, ranks=GONE)])
    assert not ended([look(0, ranks=GONE, run="other"), look(STEP, ranks=GONE)])
    for state in ("frozen", "unreachable", "absent"):
        unsure = (*ranks()[:3], rank(3, state=state))
        assert not ended([look(0, ranks=unsure), look(STEP, ranks=unsure)])


def test_a_rank_that_died_is_kept_once_and_named(tmp_path: Path) -> None:
    line = StoodIn(tmp_path)
    with line.served() as run:
        watch = line.watch([])
        line.looks(watch, 1)
        line.signal(1, signal.SIGKILL)
        found = line.looks(watch, 4)[-1]
        (act,) = Record(line.store.root).acts()
    assert (found.state, found.rank) == ("degraded", 1)
    assert (act["run"], act["rank"], act["done"]) == (run, 1, "nothing")
    assert "rank 1 (node1)" in act["reason"]
    with tarfile.open(Path(act["folder"]) / "support-bundle.tar.gz") as bundle:
        names = [name.split("/", 1)[1] for name in bundle.getnames()]
    assert {"watch/stacks.txt", "line/rank0.log", "line/rank1.log"} <= set(names)
    assert "serve_forever" in act["places"]["0"] or "select" in act["places"]["0"]


def test_the_stopped_rank_that_the_others_gave_up_is_in_the_stacks(tmp_path: Path) -> None:
    """Its peers end after their own patience, long before the watch would call it a wedge."""
    line = StoodIn(tmp_path, 'on_wedge = "restart-once"')
    with line.served():
        watch = line.watch([])
        line.looks(watch, 1)
        line.signal(1, signal.SIGSTOP)
        line.signal(0, signal.SIGKILL)
        found = line.looks(watch, 4)[-1]
        (act,) = Record(line.store.root).acts()
    assert found.state == "down"
    assert (watch.restart, act["done"]) == ("restart-once", "restart-once")
    assert "stopped" in act["places"]["1"]
    assert "stopped" in (Path(act["folder"]) / "stacks.txt").read_text()


def test_on_wedge_stop_ends_what_is_left(tmp_path: Path) -> None:
    line = StoodIn(tmp_path, 'on_wedge = "stop"')
    with line.served():
        watch = line.watch([])
        line.looks(watch, 1)
        line.signal(0, signal.SIGKILL)
        line.looks(watch, 4)
        assert line.processes(1) == []
        watch.run(until_stopped=True)


@pytest.mark.parametrize(
    ("how", "transport", "despite", "words"),
    [
        ("restart-once", "shm", (), ["--replace"]),
        ("restart-once", "off", (), ["--replace", "--without-transport"]),
        ("restart-without-transport", "shm", (), ["--replace", "--without-transport"]),
        ("restart-once", "verbs", ("A", "B"), ["--replace", "--despite", "A,B"]),
    ],
)
def test_a_restart_is_asked_for_as_the_start_was(
    how: OnWedge, transport: str, despite: tuple[str, ...], words: list[str]
) -> None:
    assert restart_words(how, {"transport": transport}, despite) == words


def test_the_evidence_has_the_site_though_its_file_is_gone(tmp_path: Path) -> None:
    line = StoodIn(tmp_path, 'on_wedge = "restart-once"')
    with line.served():
        watch = line.watch([])
        line.looks(watch, 1)
        line.site.unlink()
        line.signal(1, signal.SIGKILL)
        line.looks(watch, 4)
        (act,) = Record(line.store.root).acts()
    assert (act["done"], watch.restart) == ("nothing", None)
    with tarfile.open(Path(act["folder"]) / "support-bundle.tar.gz") as bundle:
        (member,) = [one for one in bundle.getmembers() if one.name.endswith("/site.toml")]
        file = bundle.extractfile(member)
        assert file is not None and file.read().decode() == line.loaded.text


@pytest.mark.parametrize("how", ["stopped", "restarted"])
def test_a_line_that_was_stopped_or_restarted_before_is_left(tmp_path: Path, how: str) -> None:
    line = StoodIn(tmp_path, 'on_wedge = "restart-once"')
    with line.served():
        watch = line.watch([])
        line.looks(watch, 1)
        if how == "stopped":
            run = line.store.latest()
            assert run is not None
            mark_stopped(run)
        else:
            earlier = Act(0.0, "earlier", "no token", 1, "restart-once", "", "/x", {})
            Record(line.store.root).add(earlier)
        line.signal(0, signal.SIGKILL)
        line.signal(1, signal.SIGKILL)
        line.looks(watch, 4)
    assert watch.restart is None
    acts = [one["done"] for one in Record(line.store.root).acts()]
    assert acts == ([] if how == "stopped" else ["restart-once", "nothing"])
