"""Programs of a node whose JSON has other types than they should: told, never a traceback."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.doctor.stand import Stand, site

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 1e9, True, "", "x", [], [[]], [None], [1], {}, {"": None}]
)
ASKED = ("DOCKER", "IMAGE", "LINE", "DISK", "ADDRESS")
CONTAINER = {
    "Name": "/tetraspark-four-r1",
    "State": {"Status": "running"},
    "RestartCount": 1,
}
ROW = {"Names": "tetraspark-four-r1", "State": "running", "Status": "Up", "Labels": "a=b"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every part of a JSON value, itself included."""
    if isinstance(value, dict):
        below = list(value.items())
    else:
        below = list(enumerate(value)) if isinstance(value, list) else []
    return [path, *(place for key, one in below for place in places(one, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a JSON value with another part at a path."""
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], odd)
    return copy


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_answer_brings_a_doctor_down(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stand = Stand(site(Path(folder)))
        two = stand[2]
        info = json.loads(two.commands["docker info"].stdout)
        route = json.loads(two.commands["route to 192.168.1.13"].stdout)
        info["DiscoveredDevices"] = [{"ID": "nvidia.com/gpu=all"}]
        whole = [info, two.image, CONTAINER, ROW, route]
        number = data.draw(st.integers(0, len(whole) - 1))
        path = data.draw(st.sampled_from(places(whole[number])))
        whole[number] = changed(whole[number], path, data.draw(ODD))
        info, image, container, row, route = whole
        two.say("docker info", json.dumps(info))
        two.say("docker objects", f"{json.dumps(image)}\n{json.dumps(container)}\n")
        two.say("docker ps", f"{json.dumps(row)}\n")
        two.say("route to 192.168.1.13", json.dumps(route))
        report = stand.examine(*ASKED)
    assert {one.node for one in report.checks} >= {"spark1", "spark2", "spark3", "spark4"}
