"""What a copy sends, and what it never does; the words of rsync against a real rsync."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.weights.checkpoints import Here
from tests.weights.fleets import facts, fleet_site
from tetraspark.errors import RunError, UsageError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Space
from tetraspark.weights.copy_plan import Transfer, plan_copy, transfer_of
from tetraspark.weights.inside.partial import place, prepare
from tetraspark.weights.mounted import MOUNTINFO, mount_of
from tetraspark.weights.place import place_of
from tetraspark.weights.route import INNER_FAILED, Route, check_route, route_to
from tetraspark.weights.tally import FileSum, Tally, take_tally, tree_sha256

LOADED = fleet_site('mode = "copy"')
PLACE = place_of(LOADED)
FOLDER = "/home/alice/models/DeepSeek-V4.1-Flash"
ROOM = 10_000
SOURCE = Tally("spark1", "/root/m", True, {"a": FileSum(600), "b": FileSum(300), "c": FileSum(1)})


def transfer(
    there: dict[str, int],
    partial: dict[str, int] | None = None,
    free: int = ROOM,
    mounts: str = "",
) -> Transfer:
    found = Tally("spark4", FOLDER, True, {name: FileSum(size) for name, size in there.items()})
    arrived = {f"{FOLDER}/.tetraspark-partial/{k}": v for k, v in (partial or {}).items()}
    space = {PLACE.path: Space("/home", 1 << 40, free)}
    seen = facts("spark4", {}, {MOUNTINFO: mounts}, arrived, space=space)
    return transfer_of(PLACE, route_to(LOADED.site, "spark4"), SOURCE, found, seen)


def test_what_is_missing_or_of_another_size_is_sent_and_the_rest_hashed() -> None:
    found = transfer({"a": 600, "b": 299, "own.txt": 5}, {"b": 100, "c": 900})
    assert (found.names, found.same) == (("b", "c"), ("a",))
    assert (found.bytes, found.kept) == (301, 101)
    assert found.folder == FOLDER and found.partial == f"{FOLDER}/.tetraspark-partial"


def test_what_does_not_fit_is_told_with_the_bytes_that_lack() -> None:
    assert transfer({}, {"a": 500}, free=401).kept == 500
    with pytest.raises(RunError) as caught:
        transfer({}, {"a": 500}, free=400)
    (problem,) = caught.value.problems
    assert (problem.where, problem.seen) == (f"spark4 {FOLDER}", "400 bytes free on /home")
    assert problem.wanted == "401 bytes: 3 files"
    assert problem.fix == f"make room for 1 bytes: ssh bob@10.0.0.4 df -h {FOLDER}"


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
40 22 0:50 / /home/alice rw,relatime - nfs4 spark1:/srv/home rw,vers=4.2
41 22 8:2 / /mnt/with\\040space rw - xfs /dev/sdb1 rw
"""


def test_a_folder_on_another_machine_is_refused() -> None:
    with pytest.raises(RunError, match=r"/home/alice is mounted from spark1:/srv/home \(nfs4\)"):
        transfer({}, mounts=MOUNTS)
    found = mount_of(MOUNTS, "/mnt/with space/x")
    assert found is not None and (found.kind, found.remote) == ("xfs", False)
    assert mount_of("nonsense\n", "/x") is None
    root = mount_of(MOUNTS, "/home/alicex")
    assert root is not None and root.source == "/dev/nvme0n1p2"


@pytest.mark.parametrize("mode", ['mode = "local"', 'mode = "nfs"\nnfs_server = "10.0.22.1"'])
def test_only_a_site_that_copies_copies(mode: str) -> None:
    loaded = fleet_site(mode)
    with pytest.raises(UsageError, match='mode = "copy" for `weights copy`'):
        plan_copy(loaded, place_of(loaded), Here(), ["spark2"], lambda _: None)


def rsync(route: Route, source: Path, target: Path, names: Iterable[str]) -> None:
    """Run the command of a copy on this machine."""
    words = route.rsync(str(source), str(target))
    assert words[-1] == f"10.0.0.4:{target}/"
    argv = [*words[:-1], f"{target}/"]
    listed = b"".join(name.encode() + b"\0" for name in names)
    subprocess.run(argv, input=listed, check=True, capture_output=True)


def test_L18_what_is_sent_is_named_one_by_one_and_nothing_is_deleted(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    for name in ("models/w.bin", "src/models/a.py", "a b'c.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    route = route_to(LOADED.site, "spark4")
    words = " ".join(route.rsync("/s", "/t"))
    assert "delete" not in words and "clude" not in words
    first = take_tally(Here(), "n", str(source), lambda _: None)
    rsync(route, source, target, first.files)
    second = take_tally(Here(), "n", str(target), lambda _: None)
    assert second.files.keys() - first.files.keys() == {"mine.txt"}
    sums = {name: one for name, one in second.sums.items() if name in first.sums}
    assert tree_sha256(sums) == tree_sha256(first.sums)
    assert (target / "mine.txt").read_text() == "mine"


def test_a_part_that_arrived_is_kept_and_one_with_other_bytes_replaced(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    source.mkdir()
    target.mkdir()
    data = bytes(range(256)) * 4096
    (source / "good").write_bytes(data)
    (source / "bad").write_bytes(data)
    (target / "good").write_bytes(data[:500_000])
    (target / "bad").write_bytes(b"x" * 500_000)
    rsync(route_to(LOADED.site, "spark4"), source, target, ["good", "bad"])
    assert (target / "good").read_bytes() == (target / "bad").read_bytes() == data


def test_files_get_their_names_in_one_step_and_others_stay(tmp_path: Path) -> None:
    partial = tmp_path / "m" / ".tetraspark-partial"
    assert prepare(partial)["left"] == []
    (partial / "sub").mkdir()
    for name in ("a", "sub/b", "c"):
        (partial / name).write_text(name)
    (tmp_path / "m" / "own").write_text("own")
    assert sorted(prepare(partial)["left"]) == ["a", "c", "sub/b"]
    place(partial, ["a", "sub/b"])
    assert (tmp_path / "m" / "sub" / "b").read_text() == "sub/b"
    assert (partial / "c").exists() and (tmp_path / "m" / "own").exists()
    for name in ("../x", "/etc/passwd", "sub/../../x"):
        with pytest.raises(ValueError, match="leads out"):
            place(partial, [name])
    shutil.rmtree(partial)
    partial.symlink_to(tmp_path)
    with pytest.raises(ValueError, match="symbolic link"):
        prepare(partial)


class Head(Here):
    """A head whose ssh says what it is told to."""

    def __init__(self, rc: int, stderr: str) -> None:
        self.result = Result(rc, "", stderr)

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        assert node == "spark1" and command.argv[-1] == "true"
        return self.result


@pytest.mark.parametrize(
    ("said", "seen", "fix"),
    [
        (
            "bob@10.0.0.4: Permission denied (publickey,password).",
            "permission denied",
            "on spark1: ssh-keygen -t ed25519, unless it has a key; then: ssh-copy-id bob@10.0.0.4",
        ),
        (
            "Host key verification failed.",
            "host key unknown",
            "on spark1: log in once and compare the fingerprint: ssh bob@10.0.0.4 true",
        ),
        (
            "ssh: connect to host 10.0.0.4 port 22: Connection timed out",
            "timed out",
            "on spark1: ping -c 3 10.0.0.4; is it on, and is this its management network?",
        ),
    ],
)
def test_a_worker_that_the_head_cannot_log_in_to(said: str, seen: str, fix: str) -> None:
    route = route_to(LOADED.site, "spark4")
    with pytest.raises(RunError) as caught:
        check_route(Head(INNER_FAILED, said), route)
    (problem,) = caught.value.problems
    assert problem.where == "spark1 -> spark4 (ssh bob@10.0.0.4)"
    assert seen in problem.seen and problem.fix == fix
    check_route(Head(0, ""), route)


def test_a_disk_that_fills_meanwhile_is_told_of_the_worker() -> None:
    text = 'rsync: [receiver] write failed on "/m/a": No space left on device (28)\n'
    problem = route_to(LOADED.site, "spark4").failure(11, text, "/m")
    assert problem.where == "spark1 -> spark4:/m" and "room" in problem.wanted
    assert problem.fix.startswith("on spark1: ssh bob@10.0.0.4 df -h")
