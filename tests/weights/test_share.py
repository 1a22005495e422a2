"""NFS: what the server and each worker need, from what they have; what is refused."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.weights.fleets import NO_VOLUME, facts, fleet_site
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts, Said
from tetraspark.weights.exports import Export, admits, escaped
from tetraspark.weights.mount import NfsVolume
from tetraspark.weights.mounted import MOUNTINFO
from tetraspark.weights.place import place_of
from tetraspark.weights.share import apply, read_check
from tetraspark.weights.share_plan import (
    ADDRESSES,
    EXPORTFS,
    FSTAB,
    ROUTE,
    VOLUME,
    SharePlan,
    Step,
    removal,
    share_plan,
)
from tetraspark.weights.volume import volume_check

LOADED = fleet_site(
    'mode = "nfs"\nnfs_server = "10.0.22.1"\nnfs_clients = ["10.0.22.0/24"]\nnfs_export = "v41"'
)
PLACE = place_of(LOADED)
NAME = "tetraspark-four-sparks-switch-weights"
PLANNED = NfsVolume(NAME, PLACE.line, "10.0.22.1", "/srv/nfs/v41")
DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at "
    "unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied\n"
)
HEAD_ADDRESSES = Said(
    0, '[{"ifname":"lo","addr_info":[{"local":"127.0.0.1"}]},'
    '{"ifname":"enp1s0f0np0","addr_info":[{"family":"inet","local":"10.0.22.1"}]}]', ""
)  # fmt: skip
EXPORT = Export(
    PLACE.line, "/home/alice/models/DeepSeek-V4.1-Flash", "/srv/nfs/v41", ("10.0.22.0/24",), 1000
)


def volume(options: dict[str, str], line: str | None = PLACE.line, driver: str = "local") -> Said:
    labels = {"tetraspark.line": line} if line else None
    found = {"Name": PLANNED.name, "Driver": driver, "Options": options, "Labels": labels}
    return Said(0, json.dumps([found]), "")


def worker(node: str, said: Said = NO_VOLUME, source: str = "10.0.22.2") -> Facts:
    return routed(node, json.dumps([{"dst": "10.0.22.1", "prefsrc": source}]), said)


def routed(node: str, route: str, said: Said = NO_VOLUME) -> Facts:
    return facts(node, {VOLUME: said, ROUTE: Said(0, route, "")})


def head(
    files: dict[str, str] | None = None, addresses: Said = HEAD_ADDRESSES, uid: int = 1000
) -> Facts:
    commands = {VOLUME: NO_VOLUME, ADDRESSES: addresses}
    return facts("spark1", commands, files, {EXPORTFS: 77_000}, uid)


def plan(first: Facts, *workers: Facts) -> SharePlan:
    found = {"spark1": first} | {f"spark{n}": worker(f"spark{n}") for n in (2, 3, 4)}
    return share_plan(LOADED.site, PLACE, found | {one.node: one for one in workers})


def test_the_steps_of_the_server_come_first_and_say_how_to_undo_them() -> None:
    found = plan(head())
    assert found.by_head and found.export == EXPORT
    commands = [(step.node, step.shown) for step in found.steps]
    text = EXPORT.text.strip()
    assert text.startswith("/srv/nfs/v41 10.0.22.0/24(ro,sync,all_squash,anonuid=1000,")
    assert commands[:3] == [
        ("spark1", "sudo -n mkdir -p /srv/nfs/v41"),
        ("spark1", "sudo -n mount --bind /home/alice/models/DeepSeek-V4.1-Flash /srv/nfs/v41"),
        ("spark1", f"echo '{EXPORT.fstab.strip()}' | sudo -n tee -a {FSTAB}"),
    ]
    assert f"echo '{text}' | sudo -n tee {EXPORT.file}" in [one for _, one in commands]
    assert commands[5] == ("spark1", "sudo -n exportfs -ra")
    assert [node for node, _ in commands[6:]] == ["spark2", "spark3", "spark4"]
    assert commands[6][1].endswith(f"--opt device=:/srv/nfs/v41 {PLANNED.name}")
    assert found.steps[1].undo == "sudo umount /srv/nfs/v41"
    assert found.steps[6].undo == f"docker volume rm {PLANNED.name}"


def test_what_is_done_is_not_done_again() -> None:
    mounts = "50 22 8:1 /x /srv/nfs/v41 ro - ext4 /dev/nvme0n1p2 rw\n"
    files = {MOUNTINFO: mounts, FSTAB: f"# mine\n{EXPORT.fstab}", EXPORT.file: EXPORT.text}
    made = [worker(f"spark{n}", volume(PLANNED.options)) for n in (2, 3, 4)]
    found = plan(head(files), *made)
    assert found.steps == ()
    assert {check.verdict for check in found.checks} == {"ok"}


def test_root_needs_no_sudo_and_another_server_is_left_to_a_person() -> None:
    assert plan(head(uid=0)).steps[0].words[0] == "mkdir"
    other = plan(head(addresses=Said(0, "[]", "")))
    assert not other.by_head
    assert {step.node for step in other.steps} == {"spark2", "spark3", "spark4"}
    for odd in ("nonsense", "[" * 2000):
        assert not plan(head(addresses=Said(1, odd, ""))).by_head


def test_a_head_without_a_server_is_told() -> None:
    bare = facts("spark1", {VOLUME: NO_VOLUME, ADDRESSES: HEAD_ADDRESSES})
    (check,) = [one for one in plan(bare).checks if one.verdict == "failed"]
    assert "apt-get install nfs-kernel-server" in check.fix


def test_a_worker_that_the_server_does_not_admit_is_named() -> None:
    found = plan(head(), worker("spark3", source="192.168.1.3"))
    (check,) = [one for one in found.checks if one.verdict == "failed"]
    assert (check.id, check.node) == ("WEIGHTS.NFS_CLIENT", "spark3")
    assert check.fix == 'add "192.168.1.3" to weights.nfs_clients'
    blind = plan(head(), routed("spark3", "[" * 2000))
    assert "WEIGHTS.NFS_CLIENT" not in {one.id for one in blind.checks if one.node == "spark3"}


@pytest.mark.parametrize(
    "said",
    [
        volume({}),
        volume({**PLANNED.options, "device": ":/"}),
        volume({**PLANNED.options, "o": "addr=10.0.22.9,nfsvers=4,ro"}, line=None),
        volume(PLANNED.options, driver="other"),
    ],
)
def test_a_volume_with_other_options_is_refused_and_not_made_again(said: Said) -> None:
    found = plan(head(), worker("spark2", said))
    assert "spark2" not in {step.node for step in found.steps}
    (check,) = [one for one in found.checks if one.verdict != "ok"]
    assert check.verdict == "failed" and f"docker volume rm {PLANNED.name}" in check.fix


@pytest.mark.parametrize(
    ("said", "verdict", "text"),
    [
        (NO_VOLUME, "ok", "no volume"),
        (volume({}, line=None), "ok", "no volume"),
        (volume(PLANNED.options), "failed", "made by tetraspark for line four-sparks-switch"),
        (volume(PLANNED.options, line=None), "failed", "not made by tetraspark"),
        (Said(127, "", "docker: No such file or directory"), "unknown", "docker"),
        (Said(1, "", DENIED), "unknown", "permission denied"),
        (Said(0, "[]", ""), "unknown", "something else"),
    ],
)
def test_a_volume_that_is_left_over_is_told(said: Said, verdict: str, text: str) -> None:
    check = volume_check("spark2", None, PLANNED.name, said, "local")
    assert check.verdict == verdict and text in check.observed
    assert said.stderr != DENIED or "usermod -aG docker" in check.fix


def test_only_volumes_of_this_line_are_removed() -> None:
    local = fleet_site('mode = "local"')
    found = {
        "spark1": worker("spark1"),
        "spark2": worker("spark2", volume(PLANNED.options)),
        "spark3": worker("spark3", volume(PLANNED.options, line=None)),
        "spark4": worker("spark4", volume(PLANNED.options, line="another")),
    }
    steps = removal(local.site, place_of(local), found)
    assert [(one.node, one.words) for one in steps] == [
        ("spark2", ("docker", "volume", "rm", PLANNED.name))
    ]


class Shell:
    """Runs steps on this machine, and remembers them."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        self.ran.append(command.argv)
        assert isinstance(command.stdin, bytes)
        done = subprocess.run(command.argv, input=command.stdin, capture_output=True, check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


def test_steps_stop_at_the_first_that_fails(tmp_path: Path) -> None:
    file = tmp_path / "x.exports"
    steps = (
        Step("n1", ("tee", str(file)), f"rm {file}", "a line\n"),
        Step("n1", ("ls", str(tmp_path / "absent")), ""),
        Step("n2", ("touch", str(tmp_path / "never")), ""),
    )
    found = apply(steps, Shell(), lambda _: None)
    assert file.read_text() == "a line\n" and not (tmp_path / "never").exists()
    assert found.done == steps[:1] and not found.ok
    assert found.problems[0].where == f"n1: ls {tmp_path}/absent"
    assert "No such file" in found.problems[0].seen


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\0" not in text))
def test_a_path_is_one_word_and_the_same_again(path: str) -> None:
    word = escaped(path)
    assert not set(word) & set(" \t\n#\"'()")
    assert word.encode().decode("unicode_escape").encode("latin-1").decode() == path


def test_clients_are_addresses_networks_or_names() -> None:
    assert admits(["10.0.22.0/24"], "10.0.22.7") is True
    assert admits(["10.0.22.7", "10.0.23.0/24"], "10.0.22.8") is False
    assert admits(["spark2.lan"], "10.0.22.8") is None


@pytest.mark.parametrize(
    ("rc", "stdout", "stderr", "verdict", "text"),
    [
        (0, "config.json\nmodel.safetensors\n", "", "ok", "2 entries"),
        (0, "config.json\n", "", "failed", "missing: model.safetensors"),
        (125, "", "docker: Error: failed to mount local volume: mount :/srv/nfs/v41:/var/lib/docker"
         "/volumes/w/_data, data: addr=10.0.22.1: connection refused.\n", "failed", "refused"),
        (125, "", "Unable to find image 'x:1' locally\ndocker: Error: No such image: x:1.\n",
         "unknown", "no image"),
    ],
)  # fmt: skip
def test_what_a_container_reads_is_compared(
    rc: int, stdout: str, stderr: str, verdict: str, text: str
) -> None:
    expected = {"config.json", "model.safetensors"}
    check = read_check("spark2", "docker run …", rc, stdout, stderr, expected)
    assert check.verdict == verdict and text in check.observed


def test_an_empty_folder_in_a_container_is_never_right() -> None:
    assert read_check("spark2", "docker run …", 0, "", "", None).verdict == "failed"


@pytest.mark.parametrize("options", ["nfs", ["nfs"], 3])
def test_a_volume_of_odd_options_is_unknown_and_no_traceback(options: object) -> None:
    found = {"Name": PLANNED.name, "Driver": "local", "Options": options, "Labels": None}
    said = Said(0, json.dumps([found]), "")
    for planned in (None, PLANNED):
        check = volume_check("spark2", planned, PLANNED.name, said, "local")
        assert check.verdict == "unknown"
        assert check.observed.startswith("docker volume inspect said something else")
