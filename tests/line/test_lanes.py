"""Lanes of a fleet on a ring: those of the plan that its site names, or why it has none."""

from pathlib import Path

import pytest

from tests.rdma.topology import plan_of_ring
from tests.site.test_verbs_rules import text_of
from tetraspark.errors import UsageError
from tetraspark.line.lanes import lanes_of
from tetraspark.line.make_plan import make_plan
from tetraspark.ring.lanes import wiring
from tetraspark.site.load import LoadedSite, load_source
from tetraspark.site.source import decode_source

SECTION = '[collectives]\ntransport = "verbs"\nring_plan = "ring.json"\n'


def site(folder: Path, names: list[str]) -> LoadedSite:
    """Return a site on a ring whose nodes have these names."""
    text = text_of("four-sparks-switch", SECTION)
    text = text.replace('topology = "switch"', 'topology = "ring"')
    text = text.replace("channels_max = 8\n", "")
    for number, name in enumerate(names, 1):
        text = text.replace(f'"spark{number}"', f'"{name}"')
    return load_source(decode_source(folder / "site.toml", text.encode()))


def test_the_lanes_are_those_of_the_plan(tmp_path: Path) -> None:
    plan = plan_of_ring()
    (tmp_path / "ring.json").write_text(plan.text())
    loaded = site(tmp_path, [f"node{number}" for number in range(4)])
    found = lanes_of(loaded)
    assert found is not None
    assert found.wiring == wiring(plan)
    assert found.origin == loaded.origin("collectives.ring_plan")
    told = {one.name: one for one in make_plan(loaded).settings}
    assert told["TETRASPARK_WIRING"].value == wiring(plan).to_json()
    assert (told["TETRASPARK_LANES"].value, told["TETRASPARK_TRANSPORT"].value) == ("2", "verbs")


def test_the_plan_of_other_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ring.json").write_text(plan_of_ring().text())
    loaded = site(tmp_path, ["node0", "node2", "node1", "node3"])
    with pytest.raises(UsageError) as caught:
        make_plan(loaded)
    (problem,) = caught.value.problems
    assert problem.where == loaded.origin("collectives.ring_plan").where
    assert problem.seen == "ring.json is the plan of node0, node1, node2, node3"
    assert problem.wanted == "one of node0, node2, node1, node3, in this order"
    assert problem.fix == f"tetraspark ring plan --site {loaded.path}, then apply it"


@pytest.mark.parametrize(("text", "says"), [(None, "ring.json"), ("{}", "no key 'id'")])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / "ring.json").write_text(text)
    with pytest.raises(UsageError, match=says):
        make_plan(site(tmp_path, [f"node{number}" for number in range(4)]))
