"""Room: what is needed minus what is there, not a fixed number."""

from dataclasses import replace
from pathlib import Path

from tests.doctor.stand import GIB, Stand, site

MODEL = "/home/alice/models/v4"


def free(stand: Stand, number: int, count: float) -> None:
    one = stand[number]
    one.space = {path: replace(s, free=int(count * GIB)) for path, s in one.space.items()}


def no_model(stand: Stand, number: int) -> None:
    one = stand[number]
    one.sizes = {path: size for path, size in one.sizes.items() if "/models/" not in path}


def test_a_node_that_has_all_needs_little(stand: Stand) -> None:
    free(stand, 2, 1.5)
    assert stand.check("DISK.ROOM", "spark2").verdict == "ok"
    free(stand, 2, 0.9)
    assert stand.check("DISK.ROOM", "spark2").verdict == "failed"


def test_what_other_nodes_have_says_what_one_still_needs(stand: Stand) -> None:
    no_model(stand, 2)
    free(stand, 2, 100.9)
    found = stand.check("DISK.ROOM", "spark2")
    assert found.verdict == "failed"
    assert "100.9 GiB free at /; checkpoint needs 100.0 GiB more" in found.observed
    assert found.wanted.startswith("101.0 GiB: ")
    free(stand, 2, 101.1)
    assert stand.check("DISK.ROOM", "spark2").verdict == "ok"


def test_what_is_there_in_part_counts(stand: Stand) -> None:
    del stand[2].sizes[f"{MODEL}/model-00001-of-00002.safetensors"]
    free(stand, 2, 51.5)
    found = stand.check("DISK.ROOM", "spark2")
    assert found.verdict == "ok"
    assert "checkpoint needs 50.0 GiB more" in found.observed


def test_needs_on_one_file_system_add_up_and_others_stand_alone(stand: Stand) -> None:
    no_model(stand, 2)
    stand[2].image = {}
    free(stand, 2, 124.5)
    assert stand.check("DISK.ROOM", "spark2").verdict == "failed"
    docker = stand[2].space["/var/lib/docker"]
    stand[2].space["/var/lib/docker"] = replace(docker, total=1000 * GIB, free=26 * GIB)
    assert stand.check("DISK.ROOM", "spark2").verdict == "ok"


def test_what_no_node_has_is_unknown(stand: Stand) -> None:
    for number in (1, 2, 3, 4):
        no_model(stand, number)
    found = stand.check("DISK.ROOM", "spark2")
    assert found.verdict == "unknown"
    assert "checkpoint of unknown size: no node has it" in found.observed


def test_workers_that_mount_the_checkpoint_need_no_room_for_it(tmp_path: Path) -> None:
    mode = 'mode = "nfs"\nnfs_server = "192.168.1.11"'
    stand = Stand(site(tmp_path, ('mode = "local"', mode)))
    no_model(stand, 2)
    free(stand, 2, 2)
    found = stand.check("DISK.ROOM", "spark2")
    assert found.verdict == "ok"
    assert "checkpoint" not in found.observed
    assert not [one for one in stand.examine("CHECKPOINT").checks
                if one.node == "spark2" and one.id.startswith("CHECKPOINT")]  # fmt: skip


def test_images_in_another_place_are_not_taken_for_seen(stand: Stand) -> None:
    stand[2].inform(DockerRootDir="/data/docker")
    found = stand.check("DISK.ROOM", "spark2")
    assert found.verdict == "unknown"
    assert "df -h /data/docker" in found.fix
