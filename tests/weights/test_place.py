"""What the site says of the weights: one value for every verb, and nothing that is ignored."""

import csv
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving import ROOT
from tests.weights.fleets import fleet_site
from tetraspark.errors import UsageError
from tetraspark.fleet.facts import expanded
from tetraspark.site.load import load_site
from tetraspark.weights.mount import MODEL_MOUNT, model_mount, nfs_volume
from tetraspark.weights.place import chosen, place_of

NFS = 'mode = "nfs"\nnfs_server = "10.0.22.1"'


@pytest.mark.parametrize("mode", ["local", "copy"])
@pytest.mark.parametrize(
    "key", ['nfs_server = "10.0.22.1"', 'nfs_export = "x"', 'nfs_clients = ["10.0.22.0/24"]']
)
def test_L14_a_key_that_the_mode_does_not_use_is_refused(mode: str, key: str) -> None:
    name = key.split()[0]
    text = f'`{name}` is set but `weights.mode` is "{mode}"'
    with pytest.raises(UsageError, match=text):
        fleet_site(f'mode = "{mode}"\n{key}')


def test_L14_a_node_s_server_is_refused_as_well() -> None:
    swap = ('name = "spark2"', 'name = "spark2"\nnfs_server = "10.0.22.1"')
    with pytest.raises(UsageError, match="`nfs_server` is set but"):
        fleet_site('mode = "local"', swap)


def test_L13_the_home_folder_is_that_of_the_node_that_mounts() -> None:
    site = fleet_site('mode = "copy"').site
    for rank, home in enumerate(("/home/alice", "/root", "/home/bob", "/Users/x")):
        source = f"{home}/models/DeepSeek-V4.1-Flash"
        mount = f"type=bind,source={source},target={MODEL_MOUNT},readonly"
        assert model_mount(site, rank, home) == ("--mount", mount)


def test_with_nfs_workers_mount_the_volume_and_the_head_its_folder() -> None:
    site = fleet_site(NFS).site
    assert model_mount(site, 0, "/home/alice")[1].startswith("type=bind,source=/home/alice/")
    name = "tetraspark-four-sparks-switch-weights"
    wanted = f"type=volume,source={name},target={MODEL_MOUNT},volume-nocopy,readonly"
    assert model_mount(site, 3, "/home/bob") == ("--mount", wanted)


def test_a_node_has_its_own_server_and_so_may_the_head() -> None:
    site = fleet_site(
        NFS + '\nnfs_export = "/export/v41"\nnfs_volume = "wt"',
        ('name = "spark1"', 'name = "spark1"\nnfs_server = "10.0.23.1"'),
        ('name = "spark3"', 'name = "spark3"\nnfs_server = "10.0.24.1"'),
    ).site
    volumes = [nfs_volume(site, rank) for rank in range(4)]
    servers = [volume.server for volume in volumes if volume is not None]
    assert servers == ["10.0.23.1", "10.0.22.1", "10.0.24.1", "10.0.22.1"]
    assert volumes[0] is not None and volumes[0].create[-2:] == ("device=:/export/v41", "wt")
    assert place_of(fleet_site(NFS)).holders == ("spark1",)


@given(st.text(alphabet='abc /,"=~', min_size=1, max_size=12))
def test_docker_reads_any_folder_as_it_is(name: str) -> None:
    site = fleet_site('mode = "local"').site
    model = site.model.model_copy(update={"path": f"~/{name}"})
    (_, mount) = model_mount(site.model_copy(update={"model": model}), 1, "/home/bob")
    (fields,) = csv.reader([mount])
    assert fields == ["type=bind", f"source=/home/bob/{name}", f"target={MODEL_MOUNT}", "readonly"]


@given(st.text(alphabet="~/ab", max_size=8))
def test_only_a_leading_tilde_is_the_home_folder(path: str) -> None:
    found = expanded(path, "/home/bob")
    own = path == "~" or path.startswith("~/")
    assert found == ("/home/bob" + path[1:] if own else path)
    assert not own or PurePosixPath(found).is_relative_to("/home/bob")


@pytest.mark.parametrize(
    "key",
    ['nfs_export = "../x"', 'nfs_export = "a b"', 'nfs_export = "x,rw"', 'nfs_volume = "-v"'],
)
def test_names_that_would_be_options_are_refused(key: str) -> None:
    with pytest.raises(UsageError, match="NFS"):
        fleet_site(f"{NFS}\n{key}")


def test_a_relative_path_is_no_place_on_a_node() -> None:
    swap = ("~/models/DeepSeek-V4.1-Flash", "../models/tiny")
    with pytest.raises(UsageError, match=r"\.\./models/tiny.*each node"):
        place_of(fleet_site('mode = "local"', swap))


def test_a_local_line_and_an_unknown_node_are_refused() -> None:
    with pytest.raises(UsageError, match='kind = "local"'):
        place_of(load_site(ROOT / "sites/local.toml"))
    with pytest.raises(UsageError, match=r"there are none.*nodes that have the folder"):
        chosen((), None, "that have the folder themselves")
    with pytest.raises(UsageError, match="one of spark1, spark2"):
        chosen(("spark1", "spark2"), ["spark9"], "that are workers")
