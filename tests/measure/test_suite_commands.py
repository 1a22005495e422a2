"""The commands of the suites against servers that mislead, and reports that cannot be written."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.measure.synthetic import Script, serving
from tetraspark.cli.main import app
from tetraspark.errors import TetrasparkError
from tetraspark.measure.endpoint import Endpoint

DECODE = ("bench", "decode", "--kinds", "json", "--concurrency", "1", "--rounds", "1")
FAST = Script(pieces=24, delay=0.01)
KEY = "sk-0123456789"

pytestmark = pytest.mark.timed


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*DECODE, "--max-tokens", "24", "--warm-up", "0", *words])


def refusal(*words: str) -> str:
    result = run(*words)
    assert isinstance(result.exception, TetrasparkError), result.output
    return str(result.exception)


def test_each_run_has_prompts_of_its_own_and_a_seed_repeats_them() -> None:
    seeds, prompts = [], []
    with serving(FAST) as server:
        for words in ((), (), ("--seed", "5"), ("--seed", "5")):
            result = run("--url", server.api.url, "--model", "m", "--json", *words)
            assert result.exit_code == 0, result.output
            seeds.append(json.loads(result.stdout)["plan"]["seed"])
            prompts.append(server.prompts[-1])
    assert seeds[2:] == [5, 5]
    assert len(set(seeds)) == len(set(prompts)) == 3


def test_a_place_for_the_report_is_looked_for_before_anything_is_asked(tmp_path: Path) -> None:
    with serving(FAST) as server:
        at = ("--url", server.api.url, "--model", "m")
        for file in (tmp_path, tmp_path / "absent" / "report.json", tmp_path / ("x" * 300)):
            assert "not writable" in refusal(*at, "--out", str(file))
        assert server.prompts == []
        kept = tmp_path / "report.json"
        assert run(*at, "--out", str(kept)).exit_code == 0
    assert json.loads(kept.read_text())["ok"] is True


def test_a_report_that_cannot_be_written_is_printed_all_the_same() -> None:
    with serving(FAST) as server:
        at = ("--url", server.api.url, "--model", "m")
        result = run(*at, "--out", "/dev/full", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["cells"][0]["valid"] is True
    assert "not writable: No space left on device" in result.stderr


def test_neither_the_key_nor_markup_of_the_server_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    info = json.dumps({"version": f"1.0 {KEY} [red]x[/nope]\x1b[2J", "dtype": float("nan")})
    lines = (f'data: {{"error": "[/b] \\ud800 {KEY}"}}',)
    with serving(Script(lines=lines, get=(200, info))) as server:
        at = ("--url", server.api.url, "--model", "m", "--key-file", str(file))
        told, shown = run(*at, "--json"), run(*at)
    for result in (told, shown):
        assert isinstance(result.exception, SystemExit), result.exception
        assert KEY not in result.output
    assert "[/b]" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "counts tokens at the end" not in shown.stdout
    engine = json.loads(told.stdout, parse_constant=pytest.fail)["about"]["engine"]
    assert engine["dtype"] == "nan"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://me:secret@127.0.0.1:1/v1", "name or password"),
        ("http:///v1", "http://HOST:PORT/v1"),
        ("http://[::1/v1", "http://HOST:PORT/v1"),
        ("http://127.0.0.1:1/v1?key=secret", "http://HOST:PORT/v1"),
    ],
)
def test_a_url_that_is_no_server_is_refused(url: str, words: str) -> None:
    assert words in refusal("--url", url, "--model", "m")


def test_a_site_beside_a_url_is_refused_but_not_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--site beside --url" in refusal("--url", "http://127.0.0.1:1/v1", "--site", "x.toml")
    monkeypatch.setenv("TETRASPARK_SITE", "x.toml")
    with serving(FAST) as server:
        assert run("--url", server.api.url, "--model", "m").exit_code == 0


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 100_000,
        '{"data": [{"id": {}}]}',
        '{"data": 3}',
        '{"data": [3]}',
        "null",
        '{"data": []}',
        '{"internal_states": 5, "data": [{"id": "m"}, {"id": "n"}]}',
    ],
)
def test_a_list_of_models_of_another_shape_is_refused(answer: str) -> None:
    with serving(Script(get=(200, answer))) as server:
        text = refusal("--url", server.api.url)
    assert "tetraspark status" not in text


def test_settings_of_another_shape_are_no_traceback() -> None:
    with serving(Script(pieces=24, delay=0.01, get=(200, '{"internal_states": 5}'))) as server:
        assert run("--url", server.api.url, "--model", "m").exit_code == 0


def test_a_line_whose_settings_cannot_be_read_again_has_changed() -> None:
    was = ({"key": "dtype", "value": "bfloat16"},)
    with serving(Script(get=(200, "[]"))) as server:
        endpoint = Endpoint(server.api, "stand-in", "a stand-in", effective=was)
        assert endpoint.changed() == ["the server's settings could not be read again"]
    with serving(Script(get=(200, '{"dtype": "half"}'))) as server:
        (told,) = replace(endpoint, api=server.api).changed()
    assert told == "dtype is 'half', and was 'bfloat16' when the line started"


def test_a_url_without_v1_is_told_so() -> None:
    with serving(FAST) as server:
        text = refusal("--url", server.api.root)
    assert f"fix: --url {server.api.root}/v1" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_measurement_at_once(number: signal.Signals) -> None:
    with serving(Script(drip=0.2)) as server:
        words = [*DECODE, "--url", server.api.url, "--model", "m"]
        command = [sys.executable, "-m", "tetraspark", *words]
        with subprocess.Popen(command, env={**os.environ}, stderr=subprocess.PIPE) as process:
            end = time.monotonic() + 30
            while not server.prompts and time.monotonic() < end:
                time.sleep(0.05)
            process.send_signal(number)
            began = time.monotonic()
            _, told = process.communicate(timeout=20)
        assert time.monotonic() - began < 5
    assert process.returncode in (130, 128 + number)
    assert b"Traceback" not in told
