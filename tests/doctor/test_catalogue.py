"""Every check of the catalogue passes on sound nodes, fails where it must, and bears odd text."""

import json
from dataclasses import replace

import pytest

from tests.doctor.faults import FAULTS
from tests.doctor.stand import GPU_PROCESSES, Stand
from tetraspark.doctor.baseline import baseline_path, keep_baseline, read_baseline
from tetraspark.doctor.catalogue import CATALOGUE
from tetraspark.doctor.check import ID
from tetraspark.doctor.examine import judge, start_wanted
from tetraspark.errors import UsageError
from tetraspark.fleet.facts import Said
from tetraspark.fleet.probe import probe_all

OF_A_LOCAL_LINE = {"ENGINE.VERSION"}
"""Made in test_local.py."""
IDS = [one.id for one in CATALOGUE]


def keep_good(stand: Stand) -> None:
    keep_baseline("four", stand.examine("HISTORY").states)


def test_each_check_has_a_fault_and_an_id_of_its_own() -> None:
    assert set(FAULTS) | OF_A_LOCAL_LINE == set(IDS)
    assert len(IDS) == len(set(IDS))
    assert all(ID.fullmatch(one) for one in IDS)


def test_four_sound_sparks_pass_every_check(stand: Stand) -> None:
    keep_good(stand)
    report = stand.examine(burn=True)
    assert [one for one in report.checks if one.verdict != "ok"] == []
    assert not report.failed
    assert {one.id for one in report.checks} == set(IDS) - OF_A_LOCAL_LINE
    assert report.nodes == ("spark1", "spark2", "spark3", "spark4")
    assert len(stand.ran) == 4


@pytest.mark.parametrize("id", FAULTS)
def test_a_check_asked_for_alone_finds_all_it_needs(stand: Stand, id: str) -> None:
    """What it wants of a probe is enough: the stand answers nothing else."""
    keep_good(stand)
    found = stand.examine(id, burn=FAULTS[id].make is FAULTS["BURN.CLOCK"].make)
    own = [one for one in found.checks if one.id == id]
    assert own and {one.verdict for one in own} == {"ok"}, own
    assert {one.id for one in found.checks} == {id, "SSH.REACHABLE", "PYTHON.PRESENT"}


@pytest.mark.parametrize("id", FAULTS)
def test_a_fault_fails_its_check_on_its_node_and_the_others_are_still_told(
    stand: Stand, id: str
) -> None:
    keep_good(stand)
    fault = FAULTS[id]
    fault.make(stand)
    report = stand.examine(burn=id == "BURN.CLOCK")
    found = [one for one in report.checks if (one.id, one.node) == (id, fault.node)]
    verdicts = [one.verdict for one in found]
    assert fault.verdict in verdicts, report.checks
    first = found[verdicts.index(fault.verdict)]
    assert first.observed and first.wanted and first.fix
    assert report.failed == bool(report.failures)
    if fault.verdict == "failed":
        assert report.failed
    others = {one.node for one in report.checks if one.verdict == "ok" and one.id != id}
    assert {"spark1", "spark3", "spark4"} <= others


@pytest.mark.parametrize(
    "text", ["", "garbage", "{}", "[]", "null", "[null]", '{"ID": 1}', "\x00", "1\n2\n", "[[1]]"]
)
@pytest.mark.parametrize("rc", [0, 1, 124, 127])
def test_odd_answers_are_never_taken_for_good_and_never_raise(
    stand: Stand, text: str, rc: int
) -> None:
    keep_good(stand)
    for machine in stand:
        every = stand.facts(machine.node)
        machine.commands = {name: Said(rc, text, text) for name in every.commands}
        machine.commands["docker objects"] = Said(rc, text, text)
        machine.files = dict.fromkeys(every.files, text)
    report = stand.examine()
    for id in ("DOCKER.DAEMON", "GPU.PRESENT", "GPU.IDLE", "IMAGE.PRESENT", "RDMA.DEVICE"):
        assert {one.verdict for one in report.checks if one.id == id} <= {"failed", "unknown"}, id
    assert report.failed


def test_nothing_at_all_is_never_taken_for_good(stand: Stand) -> None:
    """A node on which the probe sees nothing: only what needs no fact is well."""
    for machine in stand:
        machine.commands = {name: Said(127, "", "none") for name in machine.commands}
        machine.files, machine.links, machine.sizes, machine.memory = {}, {}, {}, {}
        machine.image = {}
    stand.fabric.ports.clear()
    report = stand.examine(nodes=("spark2",))
    fine = {one.id for one in report.checks if one.verdict == "ok"}
    assert fine <= {
        *("SSH.REACHABLE", "PYTHON.PRESENT", "TIME.SKEW", "LINE.SEGMENTS", "NCCL.CONF", "API.KEY"),
        *("ADDRESS.OWN", "CHECKPOINT.FOLDER", "CHECKPOINT.LINKS", "CHECKPOINT.SIZE"),
    }, fine


def test_required_checks_that_cannot_be_made_fail_and_others_do_not(stand: Stand) -> None:
    stand[2].say(
        "journal", rc=1, stderr="Hint: You are currently not seeing messages from other users"
    )
    stand[2].say("dmesg", rc=1, stderr="dmesg: read kernel buffer failed: Operation not permitted")
    found = stand.check("LOG.NVRM", "spark2")
    assert found.verdict == "unknown"
    assert "usermod -aG adm" in found.fix
    assert not stand.examine().failed
    stand[3].say("gpu processes", rc=9, stderr="NVIDIA-SMI has failed")
    report = stand.examine()
    assert [(one.id, one.node, one.verdict) for one in report.failures] == [
        ("GPU.IDLE", "spark3", "unknown")
    ]


def test_warnings_alone_do_not_fail(stand: Stand) -> None:
    FAULTS["NCCL.CONF"].make(stand)
    report = stand.examine()
    assert report.count("warning") == 1
    assert not report.failed


def test_beginnings_of_ids_choose_groups(stand: Stand) -> None:
    ids = {one.id for one in stand.examine("RDMA", "DISK.ROOM").checks}
    assert ids - {"SSH.REACHABLE", "PYTHON.PRESENT", "DISK.ROOM"} == {
        *("RDMA.VERBS", "RDMA.DEVICE", "RDMA.PORT", "RDMA.GID", "RDMA.GID_COMMON", "RDMA.MTU")
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("RDMA.GDI", "the ID of a check, or its beginning: RDMA.GID?"),
        ("rdma", "the ID of a check, or its beginning: RDMA?"),
        ("quite something else", "the ID of a check"),
        ("RDM", "the ID of a check, or its beginning: RDMA?"),
        ("BURN", "--burn with it"),
        ("ENGINE.VERSION", "a check of a fleet line"),
    ],
)
def test_a_name_that_is_no_check_is_refused_with_the_nearest(
    stand: Stand, name: str, wanted: str
) -> None:
    with pytest.raises(UsageError) as caught:
        stand.examine(name)
    assert caught.value.exit_code == 2
    assert [(one.seen, one.wanted) for one in caught.value.problems] == [(repr(name), wanted)]


def test_a_node_that_is_none_is_refused_with_all_there_are(stand: Stand) -> None:
    with pytest.raises(UsageError, match="'spark5'; wanted: one of spark1, spark2, spark3, spark4"):
        stand.examine(nodes=("spark5",))


def test_states_are_told_where_they_were_looked_at(stand: Stand) -> None:
    assert set(stand.examine().states) == {"spark1", "spark2", "spark3", "spark4"}
    assert stand.examine("DISK").states == {}


def test_a_damaged_record_of_the_last_good_start_counts_as_none(stand: Stand) -> None:
    keep_good(stand)
    states = read_baseline("four")
    assert states["spark1"].kernel == "6.17.0-1031-nvidia"
    keep_baseline("four", {"spark1": replace(states["spark1"], driver="")})
    assert set(read_baseline("four")) == {"spark1"}
    for text in ("", "[" * 100_000, '{"spark1": {"kernel": 1}}', '{"spark1": 7}'):
        baseline_path("four").write_text(text)
        assert read_baseline("four") == {}
    assert "HISTORY.MEMORY" not in {one.id for one in stand.examine().checks}


def test_a_line_about_to_make_way_is_not_in_its_own_way(stand: Stand) -> None:
    row = {"Names": "tetraspark-four-r0", "State": "running", "Status": "Up 3 hours"}
    for machine in stand:
        machine.say("docker ps", json.dumps(row) + "\n")
        machine.say("gpu processes", f"{GPU_PROCESSES}7, python3, 90000 MiB\n")
        machine.memory |= {"MemFree": 9_000_000, "MemAvailable": 10_000_000}
    stand[1].listeners = {8888: "pid 7 (python3)", 20000: "pid 7 (python3)"}
    assert stand.examine().failed
    report = judge(stand.loaded, probe_all(stand, start_wanted(stand.loaded)), replacing=True)
    assert not report.failed
    assert report.states == {}
    assert len({one.id for one in report.checks}) > 40
