"""systemd units of a line: read back by systemd's rules, and by systemd where it is installed."""

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.line.unit_reader import read_unit, resolved, words
from tests.serving import write_site
from tetraspark.cli.units import units
from tetraspark.errors import UsageError
from tetraspark.line.unit_words import command, raw, word
from tetraspark.line.units import Service, UnitFile, units_of
from tetraspark.site.load import LoadedSite, load_site

ODD = "a b'c\"d$e%f ${HOME} %h \\x"
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
MANAGER = Path("/lib/systemd/systemd")
ANALYZE = shutil.which("systemd-analyze")


def need(what: object, name: str) -> None:
    """Fail in CI, which installs it; skip elsewhere, with the reason."""
    if not what:
        assert "CI" not in os.environ, f"{name}: apt-get install systemd"
        pytest.skip(f"no {name} on this machine")


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSite:
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "key").write_text("k")
    keyed = {"port = 30000": 'port = 30000\nkey_file = "key"'}
    return load_site(write_site(folder, "local", keyed))


def rendered(loaded: LoadedSite, login: str | None = None, program: str = "/p") -> list[UnitFile]:
    service = Service((program, "-m", "tetraspark"), {"TETRASPARK_STATE": f"/{ODD}"}, login)
    return list(units_of(loaded, service))


@given(st.lists(TEXTS, min_size=2))
def test_words_come_back_as_they_were(texts: list[str]) -> None:
    assert words(" ".join(map(word, texts))) == texts
    program, *rest = words(command(tuple(texts)))
    assert [program.removeprefix(":"), *rest] == texts
    assert "\n" not in command(tuple(texts))


@given(TEXTS)
def test_a_raw_value_comes_back_or_is_refused(text: str) -> None:
    try:
        value = raw(text)
    except UsageError:
        return
    assert resolved(value) == text == text.strip()
    assert not value.endswith("\\")
    assert value.isprintable() or not any(ord(one) < 32 for one in value)


@pytest.mark.parametrize("text", ["", "a\0b", "\udc80", "a\n", "a\\", " a"])
def test_what_no_unit_can_hold_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="another name"):
        raw(text)


def test_the_line_serves_stops_and_never_loops(loaded: LoadedSite) -> None:
    line, _ = (read_unit(one.text) for one in rendered(loaded, "alice"))
    unit, service = line["Unit"], line["Service"]
    site = str(loaded.path)
    head = [":/p", "-m", "tetraspark"]
    assert words(service["ExecStart"][0]) == [*head, "serve", "--replace", "--site", site]
    assert words(service["ExecStop"][0]) == [*head, "stop", "--site", site]
    assert (service["Type"], service["RemainAfterExit"]) == (["oneshot"], ["yes"])
    assert [words(one) for one in service["Environment"]] == [
        ["TETRASPARK_WATCHED_BY=tetraspark-local-watch.service"],
        [f"TETRASPARK_STATE=/{ODD}"],
    ]
    name, _, path = service["LoadCredential"][0].partition(":")
    assert (name, resolved(path)) == ("tetraspark-api-key", str(loaded.path.with_name("key")))
    assert service["User"] == ["alice"]
    # All the starts that are allowed, and the pauses between them, fit in the interval.
    numbers = {
        key: int(values[0])
        for key, values in (*unit.items(), *service.items())
        if key in ("StartLimitIntervalSec", "StartLimitBurst", "TimeoutStartSec", "RestartSec")
        or key == "TimeoutStopSec"
    }
    one = numbers["TimeoutStartSec"] + numbers["TimeoutStopSec"] + numbers["RestartSec"]
    assert numbers["StartLimitIntervalSec"] > numbers["StartLimitBurst"] * one
    limits = loaded.site.deadlines
    phases = limits.import_seconds + limits.load_seconds + limits.warmup_seconds
    assert numbers["TimeoutStartSec"] > phases + limits.canary_seconds
    assert numbers["TimeoutStopSec"] > limits.stop_seconds
    assert service["RestartPreventExitStatus"] == ["2"]


def test_the_watch_begins_and_ends_with_the_line(loaded: LoadedSite) -> None:
    line, watch = rendered(loaded)
    unit, service = read_unit(watch.text)["Unit"], read_unit(watch.text)["Service"]
    assert unit["BindsTo"] == unit["After"] == [line.name] == ["tetraspark-local.service"]
    assert read_unit(line.text)["Unit"]["Wants"] == [watch.name]
    site = str(loaded.path)
    assert words(service["ExecStart"][0]) == [":/p", "-m", "tetraspark", "watch", "--site", site]
    burst, pause = int(unit["StartLimitBurst"][0]), int(service["RestartSec"][0])
    assert int(unit["StartLimitIntervalSec"][0]) > 2 * burst * pause
    # It ends after it has started the line again, whose ranks are then its children.
    assert (service["Restart"], service["KillMode"]) == (["always"], ["process"])
    assert f"TETRASPARK_WATCHED_BY={watch.name}" in service["Environment"]


def test_a_users_own_units_ask_for_nothing_that_needs_root(loaded: LoadedSite) -> None:
    line, _ = (read_unit(one.text) for one in rendered(loaded))
    assert "User" not in line["Service"]
    assert not [one for one in line["Service"] if one.startswith("Protect")]
    assert line["Install"]["WantedBy"] == ["default.target"]
    system = read_unit(rendered(loaded, "alice")[0].text)
    assert "network-online.target" in system["Unit"]["After"]
    assert system["Install"]["WantedBy"] == ["multi-user.target"]
    # Homes hold state and ssh keys; a CPU line compiles, and maps what it wrote.
    assert not {"ProtectHome", "PrivateTmp", "MemoryDenyWriteExecute"} & system["Service"].keys()


@pytest.mark.parametrize("login", [None, "root"])
def test_systemd_finds_nothing_wrong(loaded: LoadedSite, tmp_path: Path, login: str | None) -> None:
    need(ANALYZE, "systemd-analyze")
    files = []
    for one in rendered(loaded, login, sys.executable):
        files.append(tmp_path / one.name)
        files[-1].write_text(one.text)
    done = subprocess.run([str(ANALYZE), "verify", *files], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    files[0].write_text(files[0].read_text().replace("Type=oneshot", "Type=onesot"))
    wrong = subprocess.run([str(ANALYZE), "verify", *files], capture_output=True, text=True)
    assert "onesot" in wrong.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every login can enter: pytest's own are its owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_systemd_reads_the_words_that_were_meant(loaded: LoadedSite, open_folder: Path) -> None:
    """A manager that only tells what it loaded; it must not be root, and needs some targets."""
    need(MANAGER.exists(), str(MANAGER))
    nobody = pwd.getpwnam("nobody")
    folder, runtime = open_folder / "units", open_folder / "runtime"
    folder.mkdir()
    runtime.mkdir()
    runtime.chmod(0o777)
    for name in ("basic", "default", "shutdown", "sysinit"):
        (folder / f"{name}.target").write_text("[Unit]\nDescription=stand-in\n")
    line, _ = rendered(loaded)
    (folder / line.name).write_text(line.text)
    argv = [str(MANAGER), "--test", "--user", "--no-pager", f"--unit={line.name}"]
    env = {"XDG_RUNTIME_DIR": str(runtime), "SYSTEMD_UNIT_PATH": str(folder), "PATH": "/usr/bin"}
    switch = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    done = subprocess.run(
        argv,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **(switch if os.getuid() == 0 else {}),  # type: ignore[call-overload]  # of mixed types
    )
    told = done.stdout.partition(f"-> Unit {line.name}:")[2].partition("-> Unit ")[0]
    commands = re.findall(r"Command Line: (.*)", told)
    site = str(loaded.path)
    shown = "".join(f"\\{one}" if one in '\\"$`' else one for one in site)
    assert len(commands) == 2, done.stderr
    assert commands[0] == f'/p -m tetraspark serve --replace --site "{shown}"'
    assert f"Environment: TETRASPARK_STATE=/{ODD}" in told
    assert "Environment: TETRASPARK_WATCHED_BY=tetraspark-local-watch.service" in told


def test_the_verb_prints_writes_and_overwrites_only_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    site, out = write_site(tmp_path, "local"), tmp_path / "units"
    units(site)
    printed = capsys.readouterr().out
    assert "# tetraspark-local.service\n" in printed
    assert f"TETRASPARK_STATE={tmp_path / 'state'}" in printed
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TETRASPARK_STATE", "state")
    units(site)
    assert capsys.readouterr().out == printed
    for _ in range(2):
        units(site, out, user=True)
    assert "systemctl --user enable --now tetraspark-local.service" in capsys.readouterr().out
    units(site, user=True, json=True)
    told = json.loads(capsys.readouterr().out)["units"]
    assert {one.name: one.read_text() for one in out.iterdir()} == told
    (out / "tetraspark-local.service").write_text("[Unit]\n")
    with pytest.raises(UsageError, match="did not write"):
        units(site, out)
    assert (out / "tetraspark-local.service").read_text() == "[Unit]\n"
