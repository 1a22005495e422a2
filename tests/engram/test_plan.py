"""What is planned for a fleet: whose rows, from where, in which program's hands."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.engram.test_layout import FLASH
from tetraspark.engram.plan import PackPlan
from tetraspark.engram.site_plan import site_plan, site_wanted
from tetraspark.errors import RunError, TetrasparkError, UsageError
from tetraspark.fleet.facts import Facts, Space
from tetraspark.site.load import LoadedSite, load_site

SITES = Path(__file__).parents[2] / "sites"
RING = (SITES / "four-sparks-ring.toml").read_text()
NFS = '[weights]\nmode = "nfs"\nnfs_server = "10.0.22.1"'
MODEL = "~/models/DeepSeek-V4.1-Flash/config.json"
HOME = "/home/alice"
NODES = ("spark1", "spark2", "spark3", "spark4")


def load(tmp_path: Path, text: str = RING) -> LoadedSite:
    path = tmp_path / "site.toml"
    path.write_text(text)
    return load_site(path)


def facts(node: str, config: dict[str, Any] | str | None = None, **sizes: int) -> Facts:
    """A node whose files of shards have these sizes: `l1_bin` and so on."""
    files = {}
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        files = {MODEL.replace("~", HOME): text}
    room = {"~/engram": Space(HOME, 10**12, 7 * 10**10)}
    paths = {f"{HOME}/engram/{name}": size for name, size in sizes.items()}
    return Facts(node, HOME, 1000, 0.0, files, {}, paths, {}, room, {}, {})


def everywhere(config: Any = FLASH) -> dict[str, Facts]:
    return {name: facts(name, config) for name in NODES}


def plan(loaded: LoadedSite, found: dict[str, Facts], **more: Any) -> PackPlan:
    return site_plan(loaded, found, "pack", **more)


def refused(loaded: LoadedSite, found: dict[str, Facts], **more: Any) -> TetrasparkError:
    with pytest.raises(TetrasparkError) as caught:
        plan(loaded, found, **more)
    return caught.value


def test_every_node_packs_the_rows_of_its_rank_with_its_own_python(tmp_path: Path) -> None:
    planned = plan(load(tmp_path), everywhere())
    assert [part.node for part in planned.nodes] == list(NODES)
    for rank, part in enumerate(planned.nodes):
        assert (part.rank, part.argv, part.before) == (rank, ("python3", "-I", "-"), ())
        here = shlex.quote(str(tmp_path))
        again = f"tetraspark pack --site {here}/site.toml --node {part.node}"
        assert shlex.join(part.again) == again
        assert [one.name for one in part.shards] == [
            f"engram-l{layer}-r{rank}of4" for layer in (1, 14)
        ]
        assert part.request["model"] == f"{HOME}/models/DeepSeek-V4.1-Flash"
        assert part.free == 7 * 10**10
        rows = 384006168
        assert part.shards[0].rows == (rows * rank // 4, rows * (rank + 1) // 4)
    assert 47 < sum(one.bytes for one in planned.nodes[0].shards) / 2**30 < 48


def test_the_engine_of_the_image_decides_how_tables_are_divided(tmp_path: Path) -> None:
    assert plan(load(tmp_path), everywhere()).split == "rows"
    wanted = site_wanted(load(tmp_path))
    assert wanted["spark3"].files == ("~/engram/engram-l*-r2of4.json", MODEL)


def test_a_worker_that_mounts_its_weights_reads_them_in_a_container(tmp_path: Path) -> None:
    loaded = load(tmp_path, RING.replace('[weights]\nmode = "local"', NFS))
    planned = plan(
        loaded, {name: facts(name, FLASH if name == "spark1" else None) for name in NODES}
    )
    head, worker = planned.nodes[0], planned.nodes[2]
    assert head.argv[0] == "python3"
    assert worker.before[0][:3] == ("docker", "volume", "inspect")
    assert worker.before[1] == ("mkdir", "-p", "--", f"{HOME}/engram")
    words = " ".join(worker.argv)
    assert words.startswith("docker run --rm --interactive --network=none --user=1000 ")
    assert f"type=bind,source={HOME}/engram,target=/engram" in words
    assert words.endswith("--entrypoint python3 tetraspark:canary-roce -I -")
    assert (worker.request["model"], worker.request["folder"]) == ("/model", "/engram")


def test_workers_may_have_another_folder(tmp_path: Path) -> None:
    text = RING.replace('dir = "~/engram"', 'dir = "~/engram"\nworker_dir = "/data/engram"')
    folders = [part.folder for part in plan(load(tmp_path, text), everywhere()).nodes]
    assert folders == [f"{HOME}/engram", *["/data/engram"] * 3]


def test_what_is_there_is_told(tmp_path: Path) -> None:
    found = everywhere()
    found["spark2"] = facts("spark2", FLASH, **{"engram-l1-r1of4.bin.part": 4096})
    parts = plan(load(tmp_path), found).nodes
    assert parts[1].there == {"engram-l1-r1of4": 4096, "engram-l14-r1of4": 0}
    assert parts[0].there == {"engram-l1-r0of4": 0, "engram-l14-r0of4": 0}


def test_only_the_nodes_that_were_named(tmp_path: Path) -> None:
    planned = plan(load(tmp_path), everywhere(), only=["spark3"])
    assert [(part.node, part.rank) for part in planned.nodes] == [("spark3", 2)]
    error = refused(load(tmp_path), everywhere(), only=["spark9"])
    assert isinstance(error, UsageError) and "'spark9'" in str(error)


def test_without_a_checkpoint_nothing_is_planned(tmp_path: Path) -> None:
    error = refused(load(tmp_path), {name: facts(name) for name in NODES})
    assert isinstance(error, RunError)
    assert "on none of spark1, spark2, spark3, spark4" in str(error)


def test_two_checkpoints_are_not_one(tmp_path: Path) -> None:
    other = FLASH | {"engram_head_dim": 512}
    error = refused(load(tmp_path), everywhere() | {"spark3": facts("spark3", other)})
    assert "spark3" in str(error) and "others than those of the config.json on spark1" in str(error)


def test_a_config_without_tables_is_named_with_its_node(tmp_path: Path) -> None:
    error = refused(load(tmp_path), everywhere() | {"spark2": facts("spark2", "{")})
    assert str(error).startswith(f"spark2 {MODEL}: not JSON")


def test_a_site_without_a_folder_is_refused(tmp_path: Path) -> None:
    loaded = load(tmp_path, RING.replace('dir = "~/engram"\n', ""))
    error = refused(loaded, everywhere())
    assert isinstance(error, UsageError) and "no `engram.dir`" in str(error)


def test_a_local_site_is_refused() -> None:
    with pytest.raises(UsageError, match="without \\[image\\]"):
        site_wanted(load_site(SITES / "local.toml"))
