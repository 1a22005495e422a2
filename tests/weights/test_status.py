"""What `weights status` makes of the facts of a node."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.weights.checkpoints import Here, shard_name, write_checkpoint
from tests.weights.fleets import fleet_site
from tetraspark.fleet.facts import Facts, Said
from tetraspark.fleet.probe import probe
from tetraspark.site.load import LoadedSite
from tetraspark.weights.place import place_of
from tetraspark.weights.receipt import Receipt
from tetraspark.weights.status import NodeWeights, node_weights, wanted_on
from tetraspark.weights.tally import take_tally

NFS = 'mode = "nfs"\nnfs_server = "10.0.22.1"'


def site(folder: Path, weights: str = 'mode = "local"') -> LoadedSite:
    return fleet_site(weights, ("~/models/DeepSeek-V4.1-Flash", str(folder)))


def look(loaded: LoadedSite, node: str, said: Said | None = None) -> Facts:
    """Return what a probe finds here, as the node's; docker is as it is told."""
    place = place_of(loaded)
    found = probe(Here(), node, wanted_on(loaded.site, place, node))
    docker = said or Said(1, "", "Error: No such volume: x")
    return replace(found, commands=dict.fromkeys(found.commands, docker))


def weights_of(
    loaded: LoadedSite, node: str, receipt: Receipt | None = None, said: Said | None = None
) -> NodeWeights:
    return node_weights(loaded.site, place_of(loaded), look(loaded, node, said), receipt)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


def test_a_node_tells_its_folder_files_and_mount(folder: Path) -> None:
    found = weights_of(site(folder), "spark2")
    assert found.ok and found.holder
    assert (found.folder, found.present, found.total) == (str(folder), 8, 8)
    assert found.bytes == sum(one.stat().st_size for one in folder.iterdir())
    assert found.mount is not None and not found.mount.remote
    assert found.verified is None and not found.changed


def test_what_is_missing_counts(folder: Path) -> None:
    (folder / shard_name(2)).unlink()
    found = weights_of(site(folder), "spark2")
    assert (found.present, found.total, found.missing) == (7, 8, (shard_name(2),))
    assert not found.ok


def test_a_receipt_tells_when_and_what_has_changed_since(folder: Path) -> None:
    tally = take_tally(Here(), "spark2", str(folder), lambda _: None)
    receipt = Receipt.of(str(folder), tally).verified({"spark2": str(folder)}, 1000.0)
    found = weights_of(site(folder), "spark2", receipt)
    assert (found.verified, found.tree, found.changed) == (1000.0, receipt.tree, False)
    assert weights_of(site(folder), "spark3", receipt).verified is None
    (folder / "config.json").write_text('{"architectures": ["Other"]}')
    assert weights_of(site(folder), "spark2", receipt).changed


def test_a_worker_that_mounts_tells_its_volume(folder: Path) -> None:
    loaded = site(folder, NFS)
    found = weights_of(loaded, "spark2")
    assert not found.holder and not found.ok and found.mount is None
    assert found.volume is not None and found.volume.server == "10.0.22.1"
    assert [check.id for check in found.checks] == ["WEIGHTS.VOLUME"]
    assert weights_of(loaded, "spark1").holder


def test_a_node_without_docker_has_its_folder_all_the_same(folder: Path) -> None:
    absent = Said(127, "", "docker: No such file or directory")
    assert weights_of(site(folder), "spark2", said=absent).ok
    shared = weights_of(site(folder, NFS), "spark2", said=absent)
    assert [check.verdict for check in shared.checks] == ["unknown"]
    assert shared.as_dict()["volume"]["options"]["type"] == "nfs"
