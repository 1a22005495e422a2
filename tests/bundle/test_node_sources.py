"""What a node did not give is told with the reason, and a journal that says little is not good."""

import pytest

from tests.bundle.nodes import Nodes, found, said
from tetraspark.bundle.containers import NAMES, container_sources
from tetraspark.bundle.node_sources import journals, node_sources, wanted
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts


def facts(**commands: dict[str, object]) -> Facts:
    probe = found("x")
    named = {name.replace("__", "-") + ".txt": value for name, value in commands.items()}
    probe["commands"] |= named
    return Facts.of("spark1", probe)


def test_a_look_only_reads_and_asks_for_the_lines_own_containers() -> None:
    asked = wanted("four-sparks").commands[NAMES]
    assert asked[-1] == "name=^tetraspark-four-sparks-"


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (said("", 1, "dmesg: read kernel buffer failed: Operation not permitted"), "not permitted"),
        (said("", 127, "dmesg: No such file or directory"), "no such program"),
        (said("", 124, "no end after 4 s"), "took too long"),
        (said(""), "printed nothing"),
    ],
)
def test_a_command_that_gave_nothing_is_missing_with_the_reason(
    end: dict[str, object], why: str
) -> None:
    sources, missing = node_sources(facts(dmesg=end))
    assert "nodes/spark1/dmesg.txt" not in {source.name for source in sources}
    assert [(one.name, why in one.why) for one in missing] == [("nodes/spark1/dmesg.txt", True)]


def test_a_command_that_failed_after_a_part_is_there_and_told() -> None:
    sources, missing = node_sources(facts(docker__version=said("Client: 28\n", 1, "no daemon")))
    assert "nodes/spark1/docker-version.txt" in {source.name for source in sources}
    assert missing[0].why == "it ended with 1: no daemon"


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (said("a\n"), "a\n"),
        (said("-- No entries --\n"), None),
        (said("a\n", 0, "Hint: You are currently not seeing messages from other users"), None),
        (said("", 1, "Data from the specified boot (-1) is not available: No such boot"), ""),
        (said("", 1, "Specifying boot ID has no effect, no persistent journal was found."), None),
        (said("", 127, "journalctl: No such file or directory"), None),
    ],
)
def test_journals_are_read_as_far_as_they_can_be(end: dict[str, object], text: str | None) -> None:
    assert journals(facts(journal__previous__boot=end)).previous == text


class OddDocker(Nodes):
    """A node whose Docker answers something else."""

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        if command.argv[1] == "inspect":
            return Result(0, "<html>", "")
        return Result(1, "", "Error response from daemon: no such container")


def test_answers_of_another_kind_and_odd_names_are_missing() -> None:
    probe = found("x")
    probe["commands"][NAMES] = said("tetraspark-two-r0\n../../etc\n")
    sources, missing = container_sources(OddDocker({}, ""), Facts.of("spark1", probe))
    assert sources == []
    told = {one.name.removeprefix("nodes/spark1/containers"): one.why for one in missing}
    assert "'../../etc'" in told[""]
    assert "Expecting value" in told["/tetraspark-two-r0/inspect.json"]
    assert "no such container" in told["/tetraspark-two-r0/log.txt"]


def test_without_docker_the_containers_are_missing() -> None:
    probe = found("x")
    probe["commands"][NAMES] = said("", 1, "Cannot connect to the Docker daemon")
    sources, missing = container_sources(Nodes({}, ""), Facts.of("spark1", probe))
    assert not sources
    assert missing[0].name == "nodes/spark1/containers"
