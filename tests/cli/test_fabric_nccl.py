"""`fabric nccl`: what it prints, how it ends, and what it refuses to read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.fabric import example
from tests.fabric.nccl_sites import site_text
from tests.serving import ROOT
from tetraspark.cli.main import app
from tetraspark.errors import UsageError

SITE = ROOT / "sites" / "four-sparks-ring.toml"


def run(*words: str, site: Path = SITE, saved: Path = example.FILE) -> Result:
    return CliRunner().invoke(
        app, ["fabric", "nccl", "--site", str(site), "--from", str(saved), *words]
    )


def test_a_ring_with_a_known_version_ends_with_0() -> None:
    done = run("--nccl-version", "2.30.7+cuda13.0")
    assert done.exit_code == 0
    assert "NCCL of four-sparks-ring: stock-merged, NCCL 2.30.7" in done.stdout
    assert "NCCL_IB_MERGE_NICS" in done.stdout
    assert "spark3 carries on: rocep1s0f0, rocep1s0f1" in done.stdout
    assert "name roceP2p1s0f0, roceP2p1s0f1 in fabric.devices" in done.stdout


def test_a_refused_one_ends_with_1_and_json_tells_the_same(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SITE.read_text().replace('version = "2.30.7"\n', ""))
    done = run(site=site)
    assert done.exit_code == 1
    assert "the version of its NCCL is not known" in done.stderr
    done = run("--nccl-version", "2.29.7", "--json")
    assert done.exit_code == 1
    value = json.loads(done.stdout)
    assert (value["schema"], value["needs_patch"]) == ("tetraspark.nccl/1", True)
    assert value["refusals"][0]["seen"] == "NCCL 2.29.7"
    assert value["variables"][0]["reason"]
    assert "stock-merged REFUSED" in run("--nccl-version", "2.29.7").stdout


def test_a_version_that_the_site_states_is_taken_unless_the_command_says_another() -> None:
    done = run("--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["version"] == "2.30.7"


def test_what_the_site_says_of_its_library_is_taken_unless_the_command_says_else(
    tmp_path: Path,
) -> None:
    site = tmp_path / "site.toml"
    ring = 'nccl_library_dir = "/opt/nccl"\nnccl_patch = "dual-pci"'
    site.write_text(site_text(ring=ring))
    assert "NCCL_IB_EXTENDED_IPV4_GIDS" in run(site=site).stdout
    assert "NCCL_IB_EXTENDED" not in run("--patch", "advertise-2", site=site).stdout


def test_the_recipes_own_version_is_known(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(site_text(recipe="release"))
    done = run("--json", site=site)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["version"] == "2.30.7"


def test_mounts_are_printed_for_every_node(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    text = SITE.read_text()
    site.write_text(text.replace("channels_min", 'nccl_library_dir = "/opt/nccl"\nchannels_min', 1))
    done = run("--patch", "dual-pci", site=site)
    assert done.exit_code == 0, done.output
    for number in range(1, 5):
        assert f"spark{number} mounts /opt/nccl/libnccl.so.2:/opt/sglang/lib" in done.stdout


def test_an_inventory_of_other_nodes_and_a_version_that_is_none_are_refused(tmp_path: Path) -> None:
    value = example.inventory().as_dict()
    value["nodes"] = ["spark1", "spark2"]
    saved = tmp_path / "fabric.json"
    saved.write_text(json.dumps(value))
    done = run(saved=saved)
    assert isinstance(done.exception, UsageError)
    assert done.exception.problems[0].seen == "nodes spark1, spark2"
    done = run("--nccl-version", "latest")
    assert isinstance(done.exception, UsageError)
    problem = done.exception.problems[0]
    assert (problem.where, problem.fix) == ("--nccl-version", "--nccl-version 2.30.7")


def test_nodes_that_were_not_seen_are_refused_with_their_reason_and_no_profile(
    tmp_path: Path,
) -> None:
    value = example.inventory().as_dict()
    value["unseen"] = dict.fromkeys(value["nodes"], "no route to host")
    value["fixes"] = {"spark1": "ssh alice@192.168.1.11"}
    value["fabrics"] = {}
    saved = tmp_path / "fabric.json"
    saved.write_text(json.dumps(value))
    done = run(saved=saved)
    assert done.exit_code == 1 and done.stdout == "NCCL of four-sparks-ring: REFUSED\n"
    assert "no route to host" in done.stderr and "ssh alice@192.168.1.11" in done.stderr
    assert f"tetraspark fabric show --site {SITE} --from {saved}" in done.stderr


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_site_without_a_fabric_is_refused(words: tuple[str, ...]) -> None:
    done = run(*words, site=ROOT / "sites" / "local.toml")
    assert isinstance(done.exception, UsageError)
    assert done.exception.problems[0].seen == 'kind = "local", without [fabric]'
