"""Every verb that uses the state folder, where that is none: a problem, and exit code 2."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.serving import ROOT, write_site
from tetraspark.cli.main import app
from tetraspark.errors import UsageError

LOCAL = (
    "status", "serve", "logs", "stop", "smoke", "watch", "watch --once", "doctor", "tune",
    "tune --show", "receipts list", "rollback", "support-bundle", "bench start", "bench decode",
    "bench prefill", "bench transport", "needle", "soak", "quality", "units",
)  # fmt: skip
FLEET = ("weights status", "weights verify", "weights copy", "ring diff plan.json", "receipts list")


@pytest.mark.parametrize("below", ["", "below"])
@pytest.mark.parametrize("verb", LOCAL)
def test_a_file_in_the_place_of_the_state_folder_is_refused(
    verb: str, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(verb, write_site(tmp_path, "here"), tmp_path, below, monkeypatch)


@pytest.mark.parametrize("verb", FLEET)
def test_the_same_with_a_fleet_before_any_node_is_reached(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "sites" / "four-sparks-ring.toml").read_text()
    site = tmp_path / "fleet.toml"
    mode = "copy" if verb == "weights copy" else "local"
    site.write_text(text.replace('mode = "local"', f'mode = "{mode}"'))
    refused(verb, site, tmp_path, "", monkeypatch)


def refused(
    verb: str, site: Path, folder: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = folder / "state"
    state.touch()
    monkeypatch.setenv("TETRASPARK_STATE", str(state / below))
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, [*verb.split(), "--site", str(site)])
    assert isinstance(result.exception, UsageError), repr(result.exception)
    (problem,) = result.exception.problems
    assert (problem.where, problem.seen) == (str(state), "not a folder")
    assert "TETRASPARK_STATE" in problem.fix
    assert state.read_bytes() == b""
