"""Receipts of a line on four nodes, and the way back to the image that the last good one ran."""

import os
from collections.abc import Iterator

import pytest

from tests.fleet.line import KEY, TAG, FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tests.serving import files_with
from tetraspark.errors import RunError
from tetraspark.receipts.changes import changes
from tetraspark.receipts.receipt import ServeReceipt
from tetraspark.receipts.rollback import recorded_site, require_there
from tetraspark.receipts.store import ReceiptStore

pytestmark = pytest.mark.fleet
BROKEN = 'raise SystemExit("a new image whose engine does not start")\n'
NAMES = [f"tetraspark-back-r{rank}" for rank in range(4)]


@pytest.fixture(scope="module")
def line(running_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetLine]:
    """A line that was served; then another image took its tag, and did not start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{running_fleet.bin}:{os.environ['PATH']}")
        give_image(running_fleet)
        made = FleetLine(running_fleet, tmp_path_factory.mktemp("fleet") / "back", "back")
        assert made.run("serve").returncode == 0
        give_image(running_fleet, BROKEN)
        failed = made.run("serve", "--replace")
        assert failed.returncode == 1, failed.stderr
        yield made
        running_fleet.heal()
        made.clean()
        give_image(running_fleet)


def last(line: FleetLine) -> ServeReceipt:
    """Return the newest receipt, as it is on disk."""
    store = ReceiptStore(line.state)
    return store.read(store.ids()[-1])


def refusals(line: FleetLine) -> list[str]:
    """Return why the newest receipt cannot be served again."""
    receipt = last(line)
    with line.nodes() as nodes, pytest.raises(RunError) as caught:
        require_there(receipt, recorded_site(receipt, line.state), nodes)
    return [str(one) for one in caught.value.problems]


def images(line: FleetLine) -> set[str]:
    """Return the IDs of the images that the line's containers run."""
    found = set()
    for number, name in enumerate(NAMES, 1):
        argv = ("docker", "inspect", "--format", "{{.Image}}", name)
        found.add(line.fleet[number].exec(*argv).stdout.strip())
    return found


def test_the_receipt_has_what_runs_on_every_node(line: FleetLine) -> None:
    receipt = last(line)
    assert [node.node for node in receipt.nodes] == [f"spark{n}" for n in range(1, 5)]
    for node in receipt.nodes:
        assert node.kernel == os.uname().release
        assert node.idle_bytes is not None and node.idle_bytes > 0
        assert node.image is not None and node.image.tag == TAG
        assert node.image.digests[0].startswith("tetraspark-test/line@sha256:")
        assert node.model is not None and node.model.folder == "/srv/model"
    assert receipt.proof.answer == "42"
    assert "GPU.PRESENT" in receipt.tolerated
    assert files_with(line.folder / "state", KEY) == []


def test_a_checkpoint_that_changed_refuses_the_way_back(line: FleetLine) -> None:
    line.behave("node2", {"answer": "43"})
    try:
        refused = line.run("rollback")
    finally:
        line.behave("node2", {})
    assert refused.returncode == 1
    assert "spark2:/srv/model" in refused.stderr
    assert "another checkpoint" in refused.stderr
    assert refused.stderr.count("error: ") == 1
    assert line.containers() == []


def test_an_image_that_is_gone_refuses_the_way_back(line: FleetLine) -> None:
    image = last(line).nodes[3].image
    assert image is not None
    line.fleet[4].exec("docker", "rmi", "--force", image.id)
    (told,) = refusals(line)
    line.fleet[4].exec("docker", "pull", "--quiet", image.digests[0])
    assert told.startswith(f"spark4: image {image.id[7:19]} is not there")
    assert told.endswith(f"fix: docker pull {image.digests[0]}")


def test_what_would_be_done_changes_nothing(line: FleetLine) -> None:
    would = line.json("rollback", "--dry-run")
    assert would["receipt"] == last(line).id
    assert [one["node"] for one in would["first"]] == [f"spark{n}" for n in range(1, 5)]
    name = would["first"][0]["argv"][-1]
    assert all(name in rank["argv"] for rank in would["plan"]["ranks"])
    assert line.containers() == []
    assert name not in line.fleet[1].exec("docker", "images", "--format", "{{.Repository}}").stdout


def test_the_recorded_image_serves_again_and_the_tag_is_left_alone(line: FleetLine) -> None:
    first = last(line)
    tagged = ("docker", "image", "inspect", "--format", "{{.Id}}", TAG)
    other = line.fleet[1].exec(*tagged).stdout
    told = line.json("rollback")
    assert told["answer"]["text"] == "42"
    recorded = first.nodes[0].image
    assert recorded is not None
    assert images(line) == {recorded.id}
    assert line.fleet[1].exec(*tagged).stdout == other != f"{recorded.id}\n"
    assert f"on spark4: docker tag {recorded.id} {TAG}" in told["keep_it"]
    second = last(line)
    assert (second.rollback_of, second.id) == (first.id, told["run"])
    assert [one for one in changes(first, second) if one.what != "idle memory"] == []
