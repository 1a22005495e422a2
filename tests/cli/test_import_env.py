"""The command: files it writes, files it refuses to write, exit codes, nothing ever run."""

import json
import stat
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from tetraspark.cli.import_env import import_env
from tetraspark.errors import UsageError
from tetraspark.site.load import load_site

FIXTURE = Path(__file__).parents[1] / "site" / "fixtures" / "four.env"


def run(*words: str | Path) -> Result:
    app = typer.Typer()
    app.command()(import_env)
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result: Result) -> str:
    assert isinstance(result.exception, UsageError)
    return str(result.exception)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def test_the_site_and_the_key_are_written_and_load(place: Path) -> None:
    result = run(FIXTURE, "-o", place / "four.toml")
    assert result.exit_code == 0, result.output
    loaded = load_site(place / "four.toml")
    assert loaded.site.api.key_file == "four.key"
    key = place / "four.key"
    assert key.read_text() == "hush-hush-2\n" and stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "# from four.env:41" in (place / "four.toml").read_text()
    assert "tetraspark plan --site" in result.output and "hush" not in result.output
    assert sorted(path.name for path in place.iterdir()) == ["four.key", "four.toml"]


def test_the_report_as_json(place: Path) -> None:
    result = run(FIXTURE, "-o", "four.toml", "--json")
    report = json.loads(result.stdout)
    assert report["loads"] is True and report["needs"] == []
    outcomes = {item["outcome"] for item in report["variables"]}
    assert outcomes == {"carried", "env", "not carried"}
    assert "hush" not in result.output


def test_existing_files_are_kept_without_force(place: Path) -> None:
    for name in ("four.toml", "four.key"):
        (place / name).write_text("mine")
        (place / name).chmod(0o644)
    text = refused(run(FIXTURE, "-o", "four.toml"))
    assert "four.toml" in text and "four.key" in text and "--force" in text
    assert (place / "four.toml").read_text() == (place / "four.key").read_text() == "mine"
    assert run(FIXTURE, "-o", "four.toml", "--force").exit_code == 0
    assert stat.S_IMODE((place / "four.key").stat().st_mode) == 0o600
    assert load_site(place / "four.toml").site.name == "four"


def test_a_key_file_elsewhere_is_named_in_full(place: Path) -> None:
    (place / "keys").mkdir()
    assert run(FIXTURE, "-o", "four.toml", "--key-file", "keys/api").exit_code == 0
    assert load_site(place / "four.toml").site.api.key_file == str(place / "keys" / "api")


def test_a_profile_that_is_not_enough_is_drafted_with_exit_1(place: Path) -> None:
    (place / ".env.tp4").write_text("TP_SIZE=four\nPORT=1234")
    result = run(".env.tp4")
    assert result.exit_code == 1
    text = (place / "tp4.toml").read_text()
    assert "port = 1234" in text and "STILL NEEDED: `engine.tp` is missing" in text
    assert "still needed" in result.output and "edit tp4.toml" in result.output
    with pytest.raises(UsageError):
        load_site(place / "tp4.toml")


@pytest.mark.parametrize("name", ["none.env", "."])
def test_a_profile_that_cannot_be_read_is_a_usage_error(place: Path, name: str) -> None:
    assert name in refused(run(name))
    assert list(place.iterdir()) == []


def test_a_place_that_cannot_be_written_is_a_usage_error(place: Path) -> None:
    assert "cannot be written" in refused(run(FIXTURE, "-o", "nowhere/four.toml"))
