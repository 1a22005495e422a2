"""`tetraspark support-bundle` on four nodes, one of which is down; the interface of a real node."""

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.fleet.nodes.fleet import Fleet
from tests.fleet.sources import site
from tests.serving import COMMAND
from tetraspark.fleet.login import logins
from tetraspark.fleet.probe import probe
from tetraspark.fleet.ssh import SshRunner
from tetraspark.line.launch import WANTED
from tetraspark.line.launch_interface import interface_of
from tetraspark.site.load import load_site

pytestmark = pytest.mark.fleet
KEY = "kEy-0123456789/abc"
CONTAINER = "tetraspark-ring-r0"
MAKE = (
    "tar -c -T /dev/null | docker import - tiny:1 && "
    f"docker create --name {CONTAINER} --env NCCL_DEBUG=INFO --env MINE={KEY} tiny:1 /{KEY}"
)


def test_the_interface_of_a_node_is_found_by_its_address_and_by_the_name_ssh_went_to(
    fleet: Fleet, tmp_path: Path
) -> None:
    path = tmp_path / "ring.toml"
    path.write_text(site("ring").replace('"10.99.0.2"', '"node2"'))
    loaded = load_site(path)
    with SshRunner(logins(loaded)) as runner:
        for rank, name in enumerate(("spark1", "spark2")):
            facts = probe(runner, name, WANTED)
            interface, problems = interface_of(loaded, rank, facts)
            assert problems == []
            assert interface is not None
            assert str(interface.address) == f"10.99.0.{rank + 1}"
            assert interface.state == "UP"


def test_a_bundle_of_a_fleet_with_a_node_down(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "ring.key").write_text(f"{KEY}\n")
    path = tmp_path / "ring.toml"
    path.write_text(site("ring").replace("[api]\n", '[api]\nkey_file = "ring.key"\n'))
    (fleet[2].root / "etc/nccl.conf").write_text(f"NCCL_DEBUG=INFO # {KEY}\n")
    fleet[4].sshd_stop()
    made = fleet[1].exec("sh", "-c", MAKE, check=False)
    assert made.returncode == 0, made.stderr
    try:
        argv = [str(COMMAND), "support-bundle", "--site", str(path), "--json"]
        file = tmp_path / "out.tar.gz"
        done = subprocess.run(
            [*argv, "--out", str(file)],
            env=os.environ | {"TETRASPARK_STATE": str(tmp_path / "state")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        fleet[1].exec("docker", "rm", CONTAINER)
        fleet[1].exec("docker", "rmi", "tiny:1")
        (fleet[2].root / "etc/nccl.conf").unlink()
    assert done.returncode == 0, done.stderr
    index = json.loads(done.stdout)
    absent = {one["name"]: one["why"] for one in index["missing"]}
    assert "ssh failed: refused" in absent["nodes/spark4"]
    with tarfile.open(file) as tar:
        texts = {
            name.partition("/")[2]: handle.read().decode()
            for name in tar.getnames()
            if (handle := tar.extractfile(name))
        }
    for node in ("spark1", "spark2", "spark3"):
        assert "Server" in texts[f"nodes/{node}/docker-version.txt"]
        assert "MemAvailable" in texts[f"nodes/{node}/meminfo.txt"]
        assert "10.99.0." in texts[f"nodes/{node}/fabric/ip-addr.json"]
    assert not [name for name in texts if name.startswith("nodes/spark4/")]
    (inspected,) = json.loads(texts[f"nodes/spark1/containers/{CONTAINER}/inspect.json"])
    assert {"NCCL_DEBUG=INFO", "MINE=[hidden]"} <= set(inspected["Config"]["Env"])
    assert texts["nodes/spark2/nccl.conf"] == "NCCL_DEBUG=INFO # [hidden]\n"
    assert not [name for name, text in texts.items() if KEY in text]
    assert {one["node"] for one in index["findings"]} == {"spark1", "spark2", "spark3"}
