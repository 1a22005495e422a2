"""The order of steps and its receipt: real commands, on a scripted server in place of a line."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.measure.synthetic import Script, serving
from tests.serving import ROOT
from tetraspark.cli.main import app
from tetraspark.fleet.facts import Facts, Said
from tetraspark.measure.qualification.receipt import NAME, check_receipt, write_receipt
from tetraspark.measure.qualification.sequence import (
    Execute,
    Outcome,
    Ran,
    execute_with,
    not_reached,
    run_steps,
)
from tetraspark.measure.qualification.step import Step
from tetraspark.measure.qualification.versions import Versions, read_versions, versions_here

SITE = ROOT / "sites" / "local.toml"
SHA = hashlib.sha256(SITE.read_bytes()).hexdigest()
# The command itself, but for the site of steps that ask a server at a URL: never both are taken.
URL_OR_SITE = """
import sys
from tetraspark.cli.main import run
if "--url" in sys.argv:
    place = sys.argv.index("--site")
    del sys.argv[place : place + 2]
run()
"""


def outcomes_of(
    steps: list[Step], folder: Path, execute: Execute, said: list[str] | None = None
) -> list[Outcome]:
    told: list[str] = [] if said is None else said
    return list(run_steps(steps, SHA, folder, execute, lambda step: told.append(step.name)))


SPARK = Versions("spark1", "6.17.0", "580.1", "5.36", {"rocep1s0f0": "28.45.4028"})


def receipt_of(folder: Path, outcomes: list[Outcome], nodes: Sequence[Versions] = (SPARK,)) -> Any:
    return write_receipt(
        folder,
        outcomes,
        nodes,
        profile="quick",
        began="2026-11-30T12:00:00+00:00",
        ended="2026-11-30T12:10:00+00:00",
        line="local",
        hardware_class="stand-in",
        site_sha256=SHA,
        tetraspark="0.1.0",
        revision="ab" * 20,
    )


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Outcome]]]:
    """Steps that are real commands: `plan` stands for a start, as it prints JSON and ends well."""
    folder = tmp_path_factory.mktemp("kept")
    with serving(Script(pieces=24, delay=0.01)) as server:
        at = ("--url", server.api.url, "--model", "scripted")
        decode = "bench decode --kinds json --max-tokens 24 --rounds 1 --warm-up 0"
        needle = "needle --lengths 64 --depths 0.5"
        steps = [
            Step("lanes", ("qualify", "fabric"), why_not="not for a local line"),
            Step("serve", ("plan",)),
            Step("decode", (*decode.split(), "--concurrency", "1", *at), ("serve",)),
            Step("needle", (*needle.split(), *at), ("serve",)),
            Step("after", ("smoke",), ("needle",)),
        ]
        yield (
            folder,
            outcomes_of(steps, folder, execute_with(SITE, (sys.executable, "-c", URL_OR_SITE))),
        )


def test_every_step_has_an_outcome_and_a_failed_one_stops_what_needs_it(
    real: tuple[Path, list[Outcome]],
) -> None:
    folder, outcomes = real
    told = {one.name: (one.verdict, one.why) for one in outcomes}
    assert told["lanes"] == ("not for this line", "not for a local line")
    assert told["serve"] == ("passed", "")
    # The scripted server has no phrase to find.
    assert told["needle"] == ("failed", "exit code 1: see its report")
    assert told["after"] == ("not run", "it needs needle, which did not pass")
    # Its report is sound, and of a server at a URL: that is not the line of the site.
    assert told["decode"] == ("failed", "its report is of another site file: none")
    assert sorted(file.name for file in folder.glob("0*.json")) == [
        "02-serve.json",
        "03-decode.json",
        "04-needle.json",
    ]
    report = json.loads((folder / "04-needle.json").read_text())
    assert report["ok"] is False


def test_the_receipt_is_bound_to_reports_and_finds_every_change(
    real: tuple[Path, list[Outcome]],
) -> None:
    folder, outcomes = real
    receipt = receipt_of(folder, outcomes)
    file = folder / NAME
    assert not receipt.passed
    assert check_receipt(file)[1] == []
    assert receipt.nodes[0].nics == {"rocep1s0f0": "28.45.4028"}
    result = CliRunner().invoke(app, ["qualify", "check", str(file)])
    assert result.exit_code == 1
    assert "the receipt is whole" in result.output and "FAILED" in result.output
    kept = folder / "03-decode.json"
    before = kept.read_bytes()
    kept.write_bytes(before.replace(b"1", b"2", 1))
    (problem,) = check_receipt(file)[1]
    assert problem.where == str(kept)
    kept.unlink()
    assert check_receipt(file)[1][0].seen == "no such file"
    os.mkfifo(kept)
    assert check_receipt(file)[1][0].seen == "a pipe"
    kept.unlink()
    kept.write_bytes(before)
    told = json.loads(file.read_text())
    told["passed"] = True
    file.write_text(json.dumps(told))
    assert {one.where for one in check_receipt(file)[1]} == {f"{file}: sha256", f"{file}: passed"}
    result = CliRunner().invoke(app, ["qualify", "check", str(file), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["whole"] is False


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "a.txt"])
def test_a_receipt_names_no_file_elsewhere(tmp_path: Path, name: str) -> None:
    outcome = Outcome("serve", "serve", "passed", "", 0, 1.0, "01-serve.json", "0" * 64)
    receipt_of(tmp_path, [outcome])
    told = json.loads((tmp_path / NAME).read_text())
    told["steps"][0]["report"] = name
    (tmp_path / NAME).write_text(json.dumps(told))
    result = CliRunner().invoke(app, ["qualify", "check", str(tmp_path / NAME)])
    assert getattr(result.exception, "exit_code", None) == 2
    assert "steps[0].report" in str(result.exception)


def test_a_passed_step_has_a_report_and_a_whole_qualification_passes(tmp_path: Path) -> None:
    steps = [Step("serve", ("plan",)), Step("lanes", (), why_not="not for a local line")]
    outcomes = outcomes_of(steps, tmp_path, lambda step: Ran(0, 1.0, b"{}"))
    assert receipt_of(tmp_path, outcomes).passed
    result = CliRunner().invoke(app, ["qualify", "check", str(tmp_path / NAME)])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("ran", "why"),
    [
        (Ran(0, 1.0, b""), "exit code 0, and no JSON report"),
        (Ran(0, 1.0, b"[]"), "exit code 0, and a report that is no object"),
        (Ran(2, 1.0, b"Usage"), "exit code 2, and no JSON report"),
        (Ran(1, 1.0, b'{"problems": [{"where": "a", "seen": "b"}]}'), "exit code 1: a: b"),
        (Ran(1, 1.0, b'{"faults": ["late"]}'), "exit code 1: late"),
        (
            Ran(0, 1.0, b'{"about": {"site_sha256": "12"}}'),
            "its report is of another site file: 12",
        ),
    ],
)
def test_what_is_no_report_of_this_site_did_not_pass(tmp_path: Path, ran: Ran, why: str) -> None:
    (found,) = outcomes_of([Step("serve", ("serve",))], tmp_path, lambda step: ran)
    assert (found.verdict, found.why) == ("failed", why)
    assert (tmp_path / "01-serve.json").read_bytes() == ran.data


def test_after_an_interruption_only_what_was_begun_is_ended(tmp_path: Path) -> None:
    steps = [
        Step("serve", ("serve",)),
        Step("decode", ("bench", "decode"), ("serve",)),
        Step("soak", ("soak",), ("serve",)),
        Step("stop", ("stop",), ("serve",), closing=True),
    ]
    asked: list[str] = []
    outcomes = outcomes_of(
        steps, tmp_path, lambda step: Ran(0, 1.0, b"{}", step.name == "decode"), asked
    )
    assert [one.verdict for one in outcomes] == ["passed", "interrupted", "not run", "passed"]
    assert asked == ["serve", "decode", "stop"]
    assert not receipt_of(tmp_path, outcomes).passed


WAITER = """
import signal, sys, time
def end(number, frame):
    print('{"ended": true}', flush=True)
    sys.exit(130)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, end)
print("ready", file=sys.stderr, flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_a_step_clean_up_and_keeps_what_it_says(number: signal.Signals) -> None:
    """The step is a command that takes its time to end; it must be asked once, and waited for."""
    code = (
        "import signal, sys\nfrom pathlib import Path\n"
        "from tetraspark.measure.qualification.sequence import execute_with\n"
        "from tetraspark.measure.qualification.step import Step\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))\n"
        f"ran = execute_with(Path('s'), (sys.executable, '-c', {WAITER!r}))(Step('a', ()))\n"
        "print(ran.exit_code, ran.interrupted, ran.data)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "ready\n"
    child.send_signal(number)
    output, errors = child.communicate(timeout=20)
    assert output == "130 True b'{\"ended\": true}\\n'\n", errors


def test_steps_that_were_never_reached_are_told(tmp_path: Path) -> None:
    steps = [Step("serve", ("serve",)), Step("smoke", ("smoke",), ("serve",))]
    first = Outcome("serve", "serve", "passed", "", 0, 1.0, "01-serve.json", "0" * 64)
    (left,) = not_reached(steps, [first])
    assert (left.name, left.verdict) == ("smoke", "not run")
    assert left.why


def test_a_receipt_of_somebody_else_moves_no_terminal_and_is_no_markup(tmp_path: Path) -> None:
    hostile = "[red]x[/] \x1b[2J"
    outcome = Outcome(hostile, hostile, "failed", hostile)
    nodes = [Versions(hostile, hostile, None, None, {hostile: hostile})]
    receipt_of(tmp_path, [outcome], nodes)
    result = CliRunner().invoke(app, ["qualify", "check", str(tmp_path / NAME)])
    assert result.exit_code == 1
    assert "\x1b[2J" not in result.output
    assert result.output.count("[red]x[/] \\x1b[2J") >= 5


def test_versions_of_this_machine_and_of_a_spark() -> None:
    here = versions_here("localhost")
    assert here.kernel == os.uname().release
    facts = Facts(
        node="spark1",
        home="/home/alice",
        uid=1000,
        time=0.0,
        files={
            "/sys/class/dmi/id/bios_version": "5.36_0ACUM018\n",
            "/sys/class/infiniband/rocep1s0f0/fw_ver": "28.45.4028\n",
        },
        links={},
        sizes={},
        globs={},
        space={},
        listeners={},
        commands={"kernel": Said(0, "6.17.0-1014-nvidia\n", ""), "driver": Said(9, "", "no")},
    )
    nics = {"rocep1s0f0": "28.45.4028"}
    assert read_versions(facts) == Versions(
        "spark1", "6.17.0-1014-nvidia", None, "5.36_0ACUM018", nics
    )
