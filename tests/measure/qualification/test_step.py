"""The table of steps: what a site can hold, and nothing that is not for it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from tests.serving import ROOT
from tetraspark.cli.main import app
from tetraspark.errors import RunError, UsageError
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.measure.qualification.fleet_lanes import lane_commands, qualify_fleet
from tetraspark.measure.qualification.sizes import sizes_of
from tetraspark.measure.qualification.step import LOCAL, RING, Step, steps_of
from tetraspark.site.load import LoadedSite, load_site

SWITCH, RING_SITE, LOCAL_SITE = (
    ROOT / "sites" / f"{name}.toml" for name in ("four-sparks-switch", "four-sparks-ring", "local")
)
MEASURED = ["smoke", "decode", "prefill", "needle", "soak", "quality"]
ORDER = ["doctor", "lanes", "serve", *MEASURED, "stop"]


def steps(site: Path, quick: bool = False, keep: bool = False) -> dict[str, Step]:
    return {step.name: step for step in steps_of(load_site(site).site, quick, keep)}


@pytest.mark.parametrize("site", [SWITCH, RING_SITE, LOCAL_SITE])
@pytest.mark.parametrize("quick", [True, False])
def test_the_order_and_what_needs_what(site: Path, quick: bool) -> None:
    found = steps(site, quick)
    assert list(found) == ORDER
    assert list(steps(site, quick, keep=True)) == ORDER[:-1]
    needing = [name for name, step in found.items() if step.needs]
    assert needing == ORDER[3:]
    assert all(found[name].needs == ("serve",) for name in needing)
    assert [name for name, step in found.items() if step.closing] == ["stop"]


def test_lanes_are_only_for_what_has_them() -> None:
    assert steps(SWITCH)["lanes"].why_not == ""
    assert steps(LOCAL_SITE)["lanes"].why_not == LOCAL
    assert steps(RING_SITE)["lanes"].why_not == RING


@pytest.mark.parametrize("site", [SWITCH, RING_SITE, LOCAL_SITE])
@pytest.mark.parametrize("quick", [True, False])
def test_no_size_is_beyond_what_the_site_lets_the_line_do(site: Path, quick: bool) -> None:
    loaded = load_site(site).site
    size, engine = sizes_of(loaded, quick), loaded.engine
    assert engine.context_length is not None and engine.max_running_requests is not None
    assert max(size.concurrencies) <= engine.max_running_requests
    assert max(*size.needle, *size.prefill, size.soak_prefill) < 0.95 * engine.context_length
    assert size.concurrencies[0] == 1


@pytest.mark.parametrize(
    "name",
    ["doctor", "lanes", "serve", "smoke", "decode", "prefill", "needle", "soak", "quality", "stop"],
)
@pytest.mark.parametrize("quick", [True, False])
def test_the_words_of_a_step_are_a_command_that_there_is(name: str, quick: bool) -> None:
    command: Any = typer.main.get_command(app)
    words = list(steps(SWITCH, quick)[name].words)
    while hasattr(command, "get_command"):
        command = command.get_command(None, words.pop(0))
    context = command.make_context(name, [*words, "--site", str(SWITCH), "--json"])
    assert context.params["json"] is True
    assert context.params["site"] == SWITCH


def test_a_qualification_of_a_long_line_reaches_its_lengths() -> None:
    words = steps(SWITCH)["needle"].words
    assert words[words.index("--lengths") + 1] == "262144,524288,917504"


def test_the_plan_of_a_qualification_is_shown_and_does_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["qualify", "run", "--site", str(LOCAL_SITE), "--dry-run", "--out", f"{tmp_path}/new"]
    )
    assert result.exit_code == 0
    assert "not for a local line" in result.output
    assert not (tmp_path / "new").exists()


class Nodes:
    """Answers as nodes do; keeps what it was asked."""

    def __init__(self, *results: Result) -> None:
        self.results = results
        self.asked: dict[str, NodeCommand] = {}

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        self.asked[node] = command
        return self.results[int(node[-1]) - 1]

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise AssertionError("nothing is copied")

    def interrupt(self) -> None: ...


def switch() -> LoadedSite:
    return load_site(SWITCH)


def test_the_lanes_of_a_site_are_qualified_on_every_node_by_its_own_devices() -> None:
    commands = lane_commands(switch(), 7)
    assert list(commands) == ["spark1", "spark2", "spark3", "spark4"]
    for rank, command in enumerate(commands.values()):
        words = command.argv
        assert words[:3] == ("docker", "run", "--rm")
        assert "--device=/dev/infiniband" in words and "--network=host" in words
        told = dict(pairwise(words))
        assert (told["--rank"], told["--world"]) == (str(rank), "4")
        assert (told["--meet"], told["--rounds"]) == ("10.0.0.1:20099", "7")
    assert "rocep1s0f1,roceP2p1s0f1" in commands["spark3"].argv
    assert "rocep1s0f0,roceP2p1s0f0" in commands["spark1"].argv


def test_a_report_is_that_of_every_node_and_a_refusal_is_told_once() -> None:
    commands = lane_commands(switch(), 7)
    nodes = Nodes(*[Result(0, '{"lanes": []}', "")] * 4)
    assert qualify_fleet(nodes, commands) == {"lanes": []}
    assert nodes.asked == commands
    told = '{"problems": [{"where": "spark2", "seen": "DOWN", "wanted": "ACTIVE", "fix": "up"}]}'
    silent = Result(125, "", "docker: no such image")
    failing = Nodes(*[Result(1, told, "")] * 3, silent)
    with pytest.raises(RunError, match="DOWN") as caught:
        qualify_fleet(failing, commands)
    first, second = caught.value.problems
    assert (first.where, second.where) == ("spark2", "spark4")
    assert second.seen == "exit code 125, no report: docker: no such image"


@pytest.mark.parametrize(("site", "seen"), [(LOCAL_SITE, "local"), (RING_SITE, "a ring")])
def test_a_site_without_lanes_between_all_nodes_is_refused(site: Path, seen: str) -> None:
    result = CliRunner().invoke(app, ["qualify", "fabric", "--site", str(site)])
    assert isinstance(result.exception, UsageError)
    assert seen in str(result.exception)
