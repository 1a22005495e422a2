"""Docker, image, port, address and reach of a node: what is told apart, and how it is worded."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor.stand import Stand, site
from tetraspark.doctor.catalogue import CHECKPOINT, ENGRAM
from tetraspark.engram.shard import shard_checks
from tetraspark.weights.checkpoint import checkpoint_checks


@pytest.mark.parametrize(
    ("error", "kind", "fix"),
    [
        ("permission denied while trying to connect to the Docker daemon socket", "permission",
         "usermod -aG docker"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker "
         "daemon running?", "Docker", "systemctl start docker"),
    ],
)  # fmt: skip
def test_a_docker_that_cannot_be_used_is_classified(
    stand: Stand, error: str, kind: str, fix: str
) -> None:
    for said in ({"stdout": json.dumps({"ServerErrors": [error]})}, {"stderr": error}):
        stand[2].say("docker info", rc=1, **said)
        found = stand.check("DOCKER.DAEMON", "spark2")
        assert found.verdict == "failed"
        assert kind in found.observed
        assert "ssh 192.168.1.12 " in found.fix
        assert fix in found.fix
    assert stand.check("LINE.CONTAINERS", "spark2").verdict == "unknown"


def test_no_docker_at_all_and_a_docker_that_hangs(stand: Stand) -> None:
    stand[2].say("docker info", rc=127, stderr="docker: No such file or directory")
    assert "apt-get install docker.io" in stand.check("DOCKER.DAEMON", "spark2").fix
    stand[2].say("docker info", rc=124, stderr="no end after 4 s")
    assert stand.check("DOCKER.DAEMON", "spark2").verdict == "unknown"
    assert stand.examine("DOCKER.DAEMON").failed


def test_a_gpu_over_cdi_alone_will_do(stand: Stand) -> None:
    device = {"Source": "cdi", "ID": "nvidia.com/gpu=all"}
    stand[2].inform(Runtimes={"runc": {}}, DiscoveredDevices=[device])
    assert stand.check("DOCKER.GPU", "spark2").verdict == "ok"


def test_images_are_the_same_though_their_ids_are_not(stand: Stand) -> None:
    ids = {machine.image["Id"] for machine in stand}
    assert len(ids) == 4
    assert stand.check("IMAGE.EQUAL").verdict == "ok"


def test_an_image_on_another_base_and_one_with_another_label_are_named(stand: Stand) -> None:
    stand[2].image["RootFS"]["Layers"] = ["sha256:1", "sha256:x"]
    found = stand.check("IMAGE.EQUAL", "spark2")
    assert found.verdict == "failed"
    assert "does not stand on its base's layers" in found.observed


def test_a_label_of_another_context_is_another_image(stand: Stand) -> None:
    stand[4].image["Config"]["Labels"]["tetraspark.context"] = "c0ffee"
    found = stand.check("IMAGE.EQUAL", "spark4")
    assert found.verdict == "failed"
    assert "tetraspark.context" in found.observed
    assert found.wanted == "as on spark1, spark2, spark3"


def test_images_are_compared_where_the_base_is_gone_and_it_says_so(stand: Stand) -> None:
    for machine in stand:
        said = machine.objects()
        lines = [line for line in said.stdout.splitlines() if '"RepoTags": ["four:1"]' in line]
        machine.say("docker objects", "\n".join(lines))
    found = stand.check("IMAGE.EQUAL")
    assert (found.verdict, found.observed) == ("ok", "equal on 4 nodes (no base to compare)")


def test_a_node_without_the_image_leaves_the_comparison_unknown(stand: Stand) -> None:
    stand[3].image = {}
    found = stand.check("IMAGE.EQUAL")
    assert (found.verdict, found.observed) == ("unknown", "not there on spark3")
    assert stand.check("IMAGE.PRESENT", "spark3").verdict == "failed"


def test_a_port_names_its_owner_and_the_key_that_chose_it(tmp_path: Path) -> None:
    stand = Stand(site(tmp_path, ("ep = 4", "ep = 4\ndist_port = 21000")))
    stand[1].listeners = {8888: "pid 811 (nginx)", 21000: ""}
    found = stand.check("PORT.API", "spark1")
    assert (found.verdict, found.observed) == ("failed", "taken by pid 811 (nginx)")
    assert "ss -ltnp" in found.fix
    assert f"{stand.loaded.path}:" in found.fix
    found = stand.check("PORT.RENDEZVOUS", "spark1")
    assert found.observed == "taken by a process that this login may not name"
    assert {one.node for one in stand.examine("PORT").checks if "PORT" in one.id} == {"spark1"}


def test_a_name_means_the_address_that_ssh_reached(tmp_path: Path) -> None:
    stand = Stand(site(tmp_path, ('"192.168.1.12"', '"spark2.lan"')))
    assert stand.check("ADDRESS.OWN", "spark2").observed == "spark2.lan on enP7s7"
    found = stand.check("ADDRESS.ROUTES", "spark1")
    assert found.verdict == "unknown"
    assert "spark3 over enP7s7" in found.observed


def test_a_name_that_ssh_did_not_use_is_unknown(tmp_path: Path) -> None:
    named = '"spark2.lan", ssh_host = "192.168.1.12"'
    found = Stand(site(tmp_path, ('"192.168.1.12"', named))).check("ADDRESS.OWN", "spark2")
    assert found.verdict == "unknown"
    assert "enP7s7 192.168.1.12" in found.observed


def test_a_volume_as_planned_is_well_and_one_of_another_server_is_not(tmp_path: Path) -> None:
    mode = 'mode = "nfs"\nnfs_server = "192.168.1.11"\nnfs_export = "/srv/v4"'
    stand = Stand(site(tmp_path, ('mode = "local"', mode)))
    options = {"type": "nfs", "o": "addr=192.168.1.11,nfsvers=4,ro", "device": ":/srv/v4"}
    for number, server in ((2, "192.168.1.11"), (3, "10.0.22.1")):
        own = options | {"o": options["o"].replace("192.168.1.11", server)}
        volume = {"Name": "tetraspark-four-weights", "Driver": "local", "Options": own}
        stand[number].say("docker volume", json.dumps([volume]))
    assert stand.check("WEIGHTS.VOLUME", "spark2").verdict == "ok"
    assert stand.check("WEIGHTS.VOLUME", "spark3").verdict == "failed"


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("bob@192.168.1.12: Permission denied (publickey,password).", "permission denied"),
        ("ssh: connect to host 192.168.1.12 port 22: Connection timed out", "timed out"),
        ("Host key verification failed.", "host key unknown"),
        ("ssh: Could not resolve hostname spark2: Name or service not known", "unknown host"),
    ],
)
def test_a_node_out_of_reach_is_classified_and_the_others_are_examined(
    stand: Stand, stderr: str, kind: str
) -> None:
    stand.refuse(2, stderr)
    report = stand.examine()
    of_two = [one for one in report.checks if one.node == "spark2"]
    assert [(one.id, one.verdict) for one in of_two] == [("SSH.REACHABLE", "failed")]
    assert kind in of_two[0].observed
    assert report.failed
    assert len({one.id for one in report.checks if one.node == "spark3"}) > 40


def test_all_nodes_out_of_reach(stand: Stand) -> None:
    for number in (1, 2, 3, 4):
        stand.refuse(number, "Connection refused")
    report = stand.examine()
    assert {one.id for one in report.checks} == {"SSH.REACHABLE"}
    assert report.failed


def test_every_check_that_others_make_of_the_model_is_in_the_catalogue(stand: Stand) -> None:
    """A check of another name would be made, and shown nowhere."""
    facts = stand.facts("spark1")
    made = checkpoint_checks("spark1", "~/models/v4", facts)
    assert {one.id for one in made} == set(CHECKPOINT)
    made = shard_checks("spark1", "~/engram", 0, 4, replace(facts, globs={}))
    assert {one.id for one in made} == set(ENGRAM)
