"""The command as a person and as a program meet it; no engine is started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import COMMAND, ROOT, Command, write_site

VERBS = (
    "plan", "serve", "status", "logs", "smoke", "stop", "import-env", "bench", "fetch", "build",
    "engine", "qualify", "doctor", "watch",
)  # fmt: skip


def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), *map(str, words)],
        env=os.environ | {"COLUMNS": "200"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_verb_with_a_sentence() -> None:
    text = run("--help").stdout
    for verb in VERBS:
        line = next(line for line in text.splitlines() if f"│ {verb} " in line)
        assert line.strip("│ ").endswith(".")


def test_the_version() -> None:
    assert run("--version").stdout.startswith("tetraspark 0.")


@pytest.mark.parametrize("words", [("plam",), ("plan", "--no-such"), ("logs", "two")])
def test_bad_usage_is_exit_code_2_without_a_traceback(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("verb", ["plan", "serve", "status", "logs", "smoke", "stop"])
def test_every_verb_refuses_a_missing_site_with_the_same_words(verb: str, tmp_path: Path) -> None:
    result = run(verb, "--site", tmp_path / "no.toml")
    assert result.returncode == 2
    assert "no.toml" in result.stderr
    assert "fix:" in result.stderr
    assert "Traceback" not in result.stderr


def test_problems_are_json_for_programs(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('name = "x"\nkind = "lokal"\n')
    result = run("plan", "--site", site, "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["ok"]) == (2, False)
    assert any(one["where"] == f"{site}:2" for one in report["problems"])


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("plan", "--nosuch"), "--nosuch"),
        (("soak", "--max-tokens", "x"), "'--max-tokens'"),
        (("plam",), "plam"),
        (("logs", "two"), "'rank'"),
    ],
)
def test_refusals_of_arguments_are_json_for_programs_too(words: tuple[str, ...], seen: str) -> None:
    result = run(*words, "--json")
    report = json.loads(result.stdout)
    (problem,) = report["problems"]
    assert (result.returncode, report["ok"]) == (2, False)
    assert seen in problem["seen"]
    assert problem["fix"].endswith("--help")


def test_plan_as_json_and_as_text(tmp_path: Path) -> None:
    line = Command(write_site(tmp_path, "planned"), tmp_path / "state")
    plan = line.json("plan")
    assert [command["rank"] for command in plan["ranks"]] == [0, 1, 2, 3]
    text = line.run("plan", "--explain").stdout
    assert "rank 3 on node3" in text
    assert "order of [[nodes]]" in text
    assert "planned.toml:" in text
    planned = line.json("serve", "--dry-run", "--without-transport")
    assert (plan["transport"], planned["transport"]) == ("shm", "off")
    assert not (tmp_path / "state").exists()


def test_a_line_never_served(tmp_path: Path) -> None:
    line = Command(write_site(tmp_path, "unserved"), tmp_path / "state")
    assert line.json("status")["reason"] == "never served"
    assert line.run("status").returncode == 1
    assert "nothing was running" in line.run("stop").stdout
    for verb in ("logs", "smoke"):
        result = line.run(verb)
        assert result.returncode == 2
        assert "never served" in result.stderr


def test_a_fleet_is_planned_offline_and_not_measured() -> None:
    site = ROOT / "sites" / "four-sparks-switch.toml"
    assert "docker run" in run("plan", "--site", site).stdout
    result = run("bench", "start", "--site", site)
    assert result.returncode == 2
    assert 'kind = "fleet"' in result.stderr


def test_an_import_that_cannot_load_writes_its_draft_and_fails(tmp_path: Path) -> None:
    (tmp_path / "a.env").write_text("TP_SIZE=4\n")
    result = run("import-env", tmp_path / "a.env", "-o", tmp_path / "a.toml")
    assert result.returncode == 1
    assert (tmp_path / "a.toml").is_file()


@pytest.mark.parametrize(
    ("site", "id", "wanted"),
    [
        ("four-sparks-ring", "RDMA,DISK.ROM", "or its beginning: DISK.ROOM?"),
        ("four-sparks-ring", "BURN.CLOCK", "a check that is made without a burn"),
        ("local", "RDMA", "a fleet: a local line is started without a doctor"),
    ],
)
def test_what_a_start_cannot_go_on_despite_is_refused(
    tmp_path: Path, site: str, id: str, wanted: str
) -> None:
    file = ROOT / "sites" / f"{site}.toml"
    words = ("--site", file, "--dry-run", "--despite", id)
    result = run("serve", *words, TETRASPARK_STATE=str(tmp_path))
    assert result.returncode == 2
    assert "error: --despite" in result.stderr
    assert wanted in result.stderr


def test_no_colour_in_a_pipe() -> None:
    assert "\x1b[" not in run("plan", "--site", ROOT / "sites" / "local.toml").stdout


def test_the_module_path_of_the_command_is_this_environment() -> None:
    assert COMMAND.parent == Path(sys.executable).parent


def test_a_verb_is_imported_when_it_is_asked_for_and_no_other() -> None:
    code = "import sys; from tetraspark.cli.main import run\n"
    code += "try: run()\nfinally: print(*sys.modules)"
    argv = [sys.executable, "-c", code, "plan", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    seen = {one for one in done.stdout.split() if one.startswith("tetraspark.cli.")}
    assert "tetraspark.cli.plan" in seen
    assert seen.isdisjoint({"tetraspark.cli.serve", "tetraspark.cli.bench", "tetraspark.cli.ring"})


def test_a_name_of_no_verb_gets_one_like_it() -> None:
    result = run("statsu")
    assert result.returncode == 2
    assert "Did you mean 'status'?" in result.stderr
