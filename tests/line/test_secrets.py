"""A line is served with a key of its own, which is then looked for wherever it must not be."""

import contextlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.line.conftest import KEY
from tests.serving import Command, files_with
from tetraspark.cli.main import app
from tetraspark.errors import UsageError
from tetraspark.fleet.process import labelled

pytestmark = pytest.mark.engine


def test_the_key_is_where_it_was_put(line: Command, served: Any) -> None:
    """Else looking for it would prove nothing: the file, and a comment of the site."""
    assert line.site.with_name("key").read_text().strip() == KEY
    assert KEY in line.site.read_text()


def test_the_key_is_in_no_argv_or_environment_of_any_process(line: Command, served: Any) -> None:
    found, looked_at = [], 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            argv, variables = ((folder / name).read_bytes() for name in ("cmdline", "environ"))
            looked_at += 1
            if KEY.encode() in argv + variables:
                found.append(argv)
    assert looked_at > len(pids(line)) > 0
    assert found == []


def test_the_key_is_in_no_plan_log_receipt_or_state(line: Command, served: Any) -> None:
    state = Path(line.env["TETRASPARK_STATE"])
    assert list(state.glob("*/receipts/*.json")), "no receipt to look into"
    assert files_with(state, KEY) == []
    (receipt,) = state.glob("*/receipts/*.json")
    assert "[hidden]" in json.loads(receipt.read_text())["site_text"]


@pytest.fixture
def invoke(line: Command, served: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what runs a verb on the line in this process: starting one takes longer."""
    for name, value in line.env.items():
        monkeypatch.setenv(name, value)
    return lambda *words: CliRunner().invoke(app, [*words, "--site", str(line.site)])


@pytest.mark.parametrize(
    "words",
    [
        "serve --dry-run --json",
        "plan --explain",
        "rollback --dry-run --json --to {run}",
        "receipts show --json",
        "units --user",
        "status --json",
    ],
)
def test_the_key_is_in_nothing_that_a_verb_prints(
    invoke: Callable[..., Result], served: Any, words: str
) -> None:
    done = invoke(*words.format(run=served["run"]).split())
    assert done.exit_code == 0, done.output
    assert len(done.stdout) > 100
    assert KEY not in done.output


def test_the_key_is_in_no_file_of_a_bundle(invoke: Callable[..., Result], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.tar.gz"
    done = invoke("support-bundle", "--out", str(bundle))
    assert done.exit_code == 0, done.output
    with tarfile.open(bundle) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    assert files_with(tmp_path / "out", "tiny")
    assert files_with(tmp_path / "out", KEY) == []


@pytest.mark.parametrize("verb", ["serve", "rollback", "smoke", "soak", "needle", "quality"])
def test_a_key_file_for_others_is_refused_by_every_verb(
    line: Command, invoke: Callable[..., Result], served: Any, verb: str
) -> None:
    file = line.site.with_name("key")
    words = ("--to", served["run"]) if verb == "rollback" else ()
    before = pids(line)
    file.chmod(0o640)
    try:
        done = invoke(verb, *words)
    finally:
        file.chmod(0o600)
    assert isinstance(done.exception, UsageError), done.output
    (problem,) = done.exception.problems
    assert (problem.where, problem.fix) == (str(file), f"chmod 600 {file}")
    assert problem.seen.startswith("mode 640")
    assert pids(line) == before


def pids(line: Command) -> set[int]:
    return {process.pid for process in labelled(Path(line.env["TETRASPARK_STATE"]))}
