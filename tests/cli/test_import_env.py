"""The command: files it writes, files it refuses to write, exit codes, nothing ever run."""

import json
import stat
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from tetraspark.cli.import_env import import_env
from tetraspark.errors import UsageError
from tetraspark.site.load import LoadedSite, load_site

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


def loaded_at(path: Path) -> LoadedSite:
    """Load an imported site beside the Dockerfile that its profile names."""
    (path.parent / "Dockerfile.canary").touch()
    return load_site(path)


def test_the_site_and_the_key_are_written_and_load(place: Path) -> None:
    result = run(FIXTURE, "-o", place / "four.toml")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in place.iterdir()) == ["four.key", "four.toml"]
    loaded = loaded_at(place / "four.toml")
    assert loaded.site.api.key_file == "four.key"
    key = place / "four.key"
    assert key.read_text() == "hush-hush-2\n" and stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "# from four.env:41" in (place / "four.toml").read_text()
    assert "tetraspark plan --site" in result.output and "hush" not in result.output


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
    assert loaded_at(place / "four.toml").site.name == "four"


def test_a_key_file_elsewhere_is_named_in_full(place: Path) -> None:
    (place / "keys").mkdir()
    assert run(FIXTURE, "-o", "four.toml", "--key-file", "keys/api").exit_code == 0
    assert loaded_at(place / "four.toml").site.api.key_file == str(place / "keys" / "api")


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


def contents(place: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in place.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "foo.key"], "the name of two files to write"),
        (["-o", "foo.toml", "--key-file", "./sub/../foo.toml"], "the name of two files to write"),
        (["-o", "my.env"], "the file that is imported"),
        (["-o", "a.toml", "--key-file", "my.env"], "the file that is imported"),
        (["-o", "symbolic"], "the file that is imported"),
        (["-o", "hard"], "the file that is imported"),
        (["-o", "a.toml", "--key-file", "hard"], "the file that is imported"),
        (["-o", "elsewhere"], "a symbolic link"),
        (["-o", "sub"], "not a plain file"),
        (["-o", "."], "a folder"),
        (["-o", "a.toml", "--key-file", "k\udcff"], "a printable name"),
    ],
)
def test_files_that_clash_are_refused_even_with_force(
    place: Path, words: list[str], said: str
) -> None:
    (place / "my.env").write_text(FIXTURE.read_text())
    (place / "symbolic").symlink_to("my.env")
    (place / "elsewhere").symlink_to("nowhere")
    (place / "hard").hardlink_to(place / "my.env")
    (place / "sub").mkdir()
    before = contents(place)
    assert said in refused(run("my.env", *words, "--force"))
    assert contents(place) == before


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "nowhere/a.toml", "--key-file", "a.key"],
        ["-o", "a.toml", "--key-file", "nowhere/a.key"],
        ["-o", LONG, "--key-file", "a.key"],
        ["-o", "a.toml", "--key-file", LONG],
    ],
)
@pytest.mark.parametrize("existing", [{}, {"a.toml": "mine", "a.key": "mine too"}])
def test_both_files_are_written_or_none(
    place: Path, words: list[str], existing: dict[str, str]
) -> None:
    for name, text in existing.items():
        (place / name).write_text(text)
        (place / name).chmod(0o640)
    text = refused(run(FIXTURE, *words, "--force"))
    assert "cannot be written" in text
    assert contents(place) == existing
    assert {stat.S_IMODE((place / name).stat().st_mode) for name in existing} <= {0o640}


def test_a_file_that_is_too_large_is_refused_before_it_is_read(place: Path) -> None:
    with (place / "big.env").open("wb") as file:
        file.truncate(2**40)
    text = refused(run("big.env", "-o", "a.toml"))
    assert f"big.env: {2**40} bytes; wanted" in text and "fix:" in text
    assert sorted(contents_names(place)) == ["big.env"]


def contents_names(place: Path) -> list[str]:
    return [path.name for path in place.iterdir()]


@pytest.mark.parametrize("line", ["SGLANG_A{}=1\n", "A=1\n", "run {}\n", "A='{}'\n"])
def test_a_file_with_too_many_settings_is_refused(place: Path, line: str) -> None:
    row = (
        line.replace("{}", "x " * 3000)
        if "'" in line
        else "".join(line.format(number) for number in range(3000))
    )
    (place / "many.env").write_text(row)
    assert "wanted: a profile of at most 2000" in refused(run("many.env", "-o", "a.toml"))
    assert contents_names(place) == ["many.env"]


def test_text_of_the_file_is_shown_as_it_is(place: Path) -> None:
    text = "A=[/nope]$1\nNAME='[bold]x[/bold]'\necho '[red]' [/red] \x1b[2J\n"
    (place / "odd[x].env").write_text(FIXTURE.read_text() + "\n" + text)
    result = run("odd[x].env", "-o", "[a].toml")
    assert result.exit_code == 0, result.output
    assert "[red]' [/red] \ufffd[2J" in result.output and "wrote [a].toml" in result.output
    assert "\x1b" not in result.output
    assert loaded_at(place / "[a].toml").site.env["NAME"] == "[bold]x[/bold]"


def test_a_profile_with_an_odd_name_is_imported(place: Path) -> None:
    (place / "odd\udcff.env").write_bytes(FIXTURE.read_bytes())
    result = run("odd\udcff.env", "-o", "a.toml")
    assert result.exit_code == 0, result.output
    assert "odd\ufffd.env:41" in (place / "a.toml").read_text()
