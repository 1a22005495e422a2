"""The suite and its command against a scripted server."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.measure.quality.reference import RIGHT
from tests.measure.quality.sandboxes import needed
from tests.measure.synthetic import Script, Server, serving
from tetraspark.cli.main import app
from tetraspark.errors import Problem, RunError
from tetraspark.measure.quality.catalogue import TASKS, chosen
from tetraspark.measure.quality.report import Outcome, QualityReport
from tetraspark.measure.quality.suite import QualityPlan, measure_quality
from tetraspark.measure.stream import GREEDY

PLAN = QualityPlan(concurrency=8, repeat=1, sampling=GREEDY, timeout=10)
ID_OF = {task.prompt: task.id for task in TASKS}
SOME = ["CODE.001", "CODE.009", "JSON.001", "NUMBER.001", "FORMAT.009"]
NO_SANDBOX = RunError(Problem("sandbox", "unshare is not there", "unshare", "install it"))


def answering(answers: dict[str, str], **more: Any) -> Script:
    """A script that answers each task by its ID, and rightly where it is told nothing."""
    known = {**RIGHT, **answers}
    more = {"delay": 0.0, "finish": "stop", **more}
    return Script(reply=lambda prompt: known[ID_OF[prompt]], **more)


def report_of(script: Script, only: list[str], sandbox: Any, **plan: Any) -> QualityReport:
    with serving(script) as server:
        given = QualityPlan(**{**vars(PLAN), **plan})
        return QualityReport(tuple(measure_quality(server.api, chosen(only), given, sandbox)))


def test_all_right_answers_make_75() -> None:
    found = report_of(answering({}), [], needed())
    assert [one for one in found.outcomes if one.verdict != "right"] == []
    assert (found.right, found.scored, found.faults) == (75, 75, ())
    assert found.totals() == {
        kind: {"right": count, "wrong": 0, "error": 0, "not run": 0}
        for kind, count in (("CODE", 25), ("JSON", 15), ("NUMBER", 20), ("FORMAT", 15))
    }
    assert found.tokens_per_second


def test_a_wrong_answer_is_no_fault_and_says_why() -> None:
    wrong = {"NUMBER.001": "41", "CODE.001": "def add(a, b): return a", "JSON.001": "{}"}
    found = report_of(answering(wrong), SOME, needed())
    assert found.verdicts == {name: "wrong" if name in wrong else "right" for name in SOME}
    why = {one.id: one.why for one in found.outcomes}
    assert why["NUMBER.001"] == "41"
    assert why["CODE.001"] == "add(2, 3): 2"
    assert "was expected" in why["JSON.001"]
    assert found.faults == ()


def test_an_answer_that_is_cut_off_is_wrong_however_it_looks() -> None:
    found = report_of(answering({}, finish="length"), ["NUMBER.001"], None)
    assert found.outcomes[0].why == "cut off after 1 tokens"
    assert found.right == 0


@pytest.mark.parametrize("broken", [{"status": 500}, {"cut": True}])
def test_what_the_server_does_wrong_is_an_error_and_not_wrong(broken: dict[str, Any]) -> None:
    found = report_of(answering({}, **broken), ["JSON", "NUMBER.001"], None)
    assert found.totals()["JSON"] == {"right": 0, "wrong": 0, "error": 15, "not run": 0}
    assert found.scored == 0
    assert found.faults == ("16 tasks: error",)


def test_without_a_sandbox_code_is_not_even_asked_for() -> None:
    script = answering({})
    with serving(script) as server:
        outcomes = tuple(measure_quality(server.api, chosen(SOME), PLAN, NO_SANDBOX))
        asked = {ID_OF[prompt] for prompt in server.prompts}
    found = QualityReport(outcomes)
    assert asked == {"JSON.001", "NUMBER.001", "FORMAT.009"}
    assert found.verdicts["CODE.009"] == "not run"
    assert (found.right, found.scored, found.faults) == (3, 3, ("2 tasks: not run",))
    assert found.outcomes[0].why == "sandbox: unshare is not there"


def test_a_sandbox_that_fails_in_the_middle_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = needed()

    def fail(*_: object) -> None:
        raise NO_SANDBOX

    monkeypatch.setattr(type(sandbox), "answer", fail)
    found = report_of(answering({}), ["CODE.001"], sandbox)
    assert found.verdicts == {"CODE.001": "error"}


def test_a_task_is_right_when_every_attempt_is() -> None:
    texts = iter(["42", "42", "41"])
    script = Script(reply=lambda prompt: next(texts), delay=0, finish="stop")
    found = report_of(script, ["NUMBER.001"], None, repeat=3, concurrency=1)
    assert sorted(one.attempt for one in found.outcomes) == [1, 2, 3]
    assert [one.verdict for one in found.outcomes].count("right") == 2
    assert found.right == 0


def test_fewer_right_than_required_is_a_fault() -> None:
    outcome = Outcome("NUMBER.001", "NUMBER", 1, "wrong", "41")
    assert QualityReport((outcome,), 1).faults == ("0 right, 1 required",)
    assert QualityReport((outcome,)).faults == ()


Invoke = Callable[..., Any]


@pytest.fixture
def invoke(server: Server) -> Invoke:
    def call(*words: str) -> Any:
        target = ("--url", server.api.url, "--model", "scripted")
        return CliRunner().invoke(app, ["quality", *target, *words])

    return call


@pytest.fixture
def server() -> Any:
    with serving(answering({"NUMBER.002": "27"})) as one:
        yield one


def test_the_command_reports_every_task(invoke: Invoke, tmp_path: Path) -> None:
    needed()
    file = tmp_path / "quality.json"
    done = invoke("--only", "CODE.002,NUMBER.002,FORMAT", "--json", "--out", str(file))
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report == json.loads(file.read_text())
    assert (report["ok"], report["sandbox"], report["right"]) == (True, "proven", 16)
    assert (report["scored"], report["asked_for"]) == (17, 17)
    first, number = report["outcomes"][:2]
    assert (first["id"], first["verdict"], first["why"]) == ("CODE.002", "right", "")
    assert (number["verdict"], number["why"], number["answer"]) == ("wrong", "27", "27")
    assert number["completion_tokens"] == 1
    assert number["seconds"] > 0
    assert report["about"]["suite"] == "quality"


def test_the_command_says_what_is_wrong(invoke: Invoke) -> None:
    done = invoke("--only", "NUMBER", "--require", "20")
    assert done.exit_code == 1
    assert "NUMBER.002 wrong: 27" in done.stdout
    assert "19 of 20 scored tasks right" in done.stdout
    assert "fault: 19 right, 20 required" in done.stdout


def test_the_command_refuses_code_without_a_sandbox_and_does_the_rest(
    invoke: Invoke, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = invoke("--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert report["sandbox"].startswith("refused: sandbox: unshare is not there")
    assert report["totals"]["CODE"] == {"right": 0, "wrong": 0, "error": 0, "not run": 25}
    assert (report["right"], report["scored"], report["asked_for"]) == (49, 50, 75)
    assert "apt-get install util-linux" in done.stderr
    assert len(server.prompts) == 50
    assert not re.search(r"def |class ", " ".join(server.prompts))


def test_the_command_never_tells_a_score_of_75_without_code(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = invoke()
    assert done.exit_code == 1
    assert "49 of 50 scored tasks right" in done.stdout
    assert "fault: 25 tasks: not run" in done.stdout
    assert "75" not in done.stdout


def test_the_list_asks_nothing(invoke: Invoke, server: Server) -> None:
    done = invoke("--list", "--only", "JSON.002,CODE.001")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "CODE.001  Write a Python function called add that adds two numbers.",
        "JSON.002  Write a JSON object with animal fox and count 17.",
        "2 tasks",
    ]
    told = json.loads(invoke("--list", "--json").stdout)
    assert len(told) == 75
    assert server.prompts == []


@pytest.mark.parametrize(
    "words", [("--only", "CODE.999"), ("--require", "76"), ("--sampling", "warm")]
)
def test_bad_options_are_refused(invoke: Invoke, server: Server, words: tuple[str, ...]) -> None:
    done = invoke(*words)
    assert done.exception is not None
    assert done.exception.exit_code == 2
    assert server.prompts == []
