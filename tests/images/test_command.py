"""`tetraspark fetch` as a person and a program meet it, and the engine check of a build."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.test_main import run
from tests.images.conftest import ARCHIVE, BODIES, TEXT, Sources
from tests.images.web import Page
from tests.serving import COMMAND, ROOT
from tetraspark.engine.hooks import TARGETS


def fetch(sources: Sources, *words: str | Path) -> subprocess.CompletedProcess[str]:
    words = ("fetch", "--manifest", sources.path, *words)
    return run(*words, TETRASPARK_MIRROR=sources.web.url)


def test_a_recipe_is_fetched_and_listed(sources: Sources) -> None:
    done = fetch(sources, "--recipe", "canary")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("downloaded") == 3 and "kernel-one-1.2: downloaded" in done.stderr
    listed = json.loads(fetch(sources, "--list", "--json", "kernel-one").stdout)
    (row,) = listed["files"]
    assert (row["component"], row["state"], row["size"]) == ("kernel-one-1.2", "present", 9000)
    done = fetch(sources, "--recipe", "base")
    assert done.returncode == 0 and "no files" in done.stdout


def test_the_recipe_comes_from_the_site(sources: Sources, tmp_path: Path) -> None:
    text = (ROOT / "sites" / "four-sparks-switch.toml").read_text()
    site = tmp_path / "site.toml"
    canary = text.replace('recipe = "release"', 'recipe = "canary"')
    site.write_text(canary + 'SGLANG_RUST_BUILD_MODE = "never"\n')
    done = fetch(sources, "--site", site, "--json")
    assert [one["state"] for one in json.loads(done.stdout)["files"]] == ["downloaded"] * 3
    done = fetch(sources, "--site", ROOT / "sites" / "local.toml")
    assert done.returncode == 2 and "without [image]" in done.stderr


def test_the_environment_may_name_the_mirror(sources: Sources) -> None:
    words = ("fetch", "--manifest", sources.path, "kernel-two")
    assert run(*words, TETRASPARK_MIRROR=sources.web.url).returncode == 0
    secret = run(*words, TETRASPARK_MIRROR="https://bob:hush@mirror.example")
    assert secret.returncode == 2 and "hush" not in secret.stderr + secret.stdout


def test_a_refusal_is_exit_code_1_with_what_was_seen_and_wanted(sources: Sources) -> None:
    row = sources.row("kernel-two-0.3")
    sources.web.serve(row.url, Page(b"TWO"))
    done = fetch(sources, "kernel-two", "--json")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    (problem,) = json.loads(done.stdout)["problems"]
    assert row.sha256 in problem["wanted"] and "sha256" in problem["seen"] and problem["fix"]


def test_verify_names_what_was_changed(sources: Sources) -> None:
    sources.fill()
    done = fetch(sources, "--verify", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["files"] == 3
    sources.cache.path(sources.row("engine").sha256).write_bytes(b"changed")
    done = fetch(sources, "--verify")
    assert done.returncode == 1
    assert f"tetraspark fetch --manifest {sources.path} engine" in done.stderr
    done = fetch(sources, "--list", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["ok"] is False


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("nothing",), "'nothing'"),
        (("--recipe", "canary", "--from", "/etc/hostname"), "one file for 3 components"),
        (("--recipe", "canary", "--from", "/no/such"), "no such file or folder"),
        (("--verify", "nope"), "COMPONENT"),
        (("--verify", "--list"), "--list"),
        (("--list", "--from", "/tmp"), "--from"),
        (("--list", "--mirror", "http://m.example"), "--mirror"),
        (("engine", "--from", "/tmp", "--mirror", "http://m.example"), "--mirror"),
        (("--recipe", "release", "engine"), "engine, not in it"),
    ],
)
def test_bad_usage_is_told(sources: Sources, words: tuple[str, ...], text: str) -> None:
    done = fetch(sources, *words)
    assert done.returncode == 2 and text in done.stderr and "Traceback" not in done.stderr


def test_a_recipe_that_the_manifest_lacks_is_no_success(sources: Sources) -> None:
    sources.path.write_text(TEXT.replace('"canary", "canary-roce"', '"canary-roce"'))
    done = fetch(sources, "--recipe", "canary")
    assert done.returncode == 2 and "no row of recipe 'canary'" in done.stderr


def test_a_file_in_the_place_of_the_cache_is_told(sources: Sources, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    for words in (("--verify",), ("--list",), ("engine",)):
        done = fetch(sources, *words)
        assert done.returncode == 2 and f"{tmp_path / 'cache'}" in done.stderr, done


def test_a_narrow_table_keeps_every_name(sources: Sources) -> None:
    done = run("fetch", "--manifest", sources.path, "--list", COLUMNS="40")
    assert "…" not in done.stdout and done.returncode == 0


def test_ctrl_c_says_how_it_goes_on(sources: Sources) -> None:
    sources.web.serve(ARCHIVE, Page(BODIES[ARCHIVE], pause=0.2))
    words = [str(COMMAND), "fetch", "--manifest", str(sources.path), "engine"]
    environment = os.environ | {"TETRASPARK_MIRROR": sources.web.url}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    while not list(sources.cache.folder.glob("*.part")) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130 and "the same command goes on" in said


def test_one_file_from_this_machine(sources: Sources, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"two")
    done = fetch(sources, "kernel-two", "--from", tmp_path / "mine")
    assert done.returncode == 0 and "copied" in done.stdout


def test_the_check_inside_an_image_needs_the_standard_library_only(tmp_path: Path) -> None:
    module = [str(COMMAND.with_name("python")), "-m", "tetraspark.engine.check"]
    whole = subprocess.run(module, capture_output=True, text=True, check=False)
    assert whole.returncode == 0, whole.stderr
    assert f"{len(TARGETS)} of {len(TARGETS)} places as known" in whole.stdout
    (tmp_path / "sglang" / "srt" / "plugins").mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").write_text("")
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    environment = os.environ | {"PYTHONPATH": path}
    other = subprocess.run(module, env=environment, capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert other.stderr.count("not there; re-check src/tetraspark/engine/") == len(TARGETS)
    assert f"0 of {len(TARGETS)} places as known" in other.stdout
