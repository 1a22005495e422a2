"""What a plan may ask of the prefill split, and what ends an engine that was asked for more."""

import json
import os
import subprocess
import sys

import pytest

from tetraspark.engine.split_env import (
    CONTEXT_FLOOR,
    MIN_CONTEXT,
    MIN_ROWS,
    ROWS_FLOOR,
    SplitSettings,
    split_settings,
)
from tetraspark.engine.standins import MODULES, path_of


def test_the_floors() -> None:
    assert (CONTEXT_FLOOR, ROWS_FLOOR) == (32_768, 1024)
    assert SplitSettings(min_context=32_768, min_rows=1024)


@pytest.mark.parametrize(
    ("context", "rows", "said"),
    [
        (32_767, 1024, "min_context = 32767: wanted at least 32768"),
        (32_768, 1023, "min_rows = 1023: wanted at least 1024"),
        (0, 0, "min_context = 0"),
    ],
)
def test_below_a_floor_is_refused(context: int, rows: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SplitSettings(context, rows)


def test_settings_come_from_the_plan_or_are_absent() -> None:
    assert split_settings({}) is None
    env = {MIN_CONTEXT: "65536", MIN_ROWS: "2048"}
    assert split_settings(env) == SplitSettings(65_536, 2048)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({MIN_CONTEXT: "65536"}, f"{MIN_ROWS}: not set, though {MIN_CONTEXT} is"),
        ({MIN_ROWS: "2048"}, f"{MIN_CONTEXT}: not set, though {MIN_ROWS} is"),
        ({MIN_CONTEXT: "65536", MIN_ROWS: "many"}, "invalid literal"),
        ({MIN_CONTEXT: "1", MIN_ROWS: "2048"}, "min_context = 1"),
    ],
)
def test_a_plan_with_half_or_bad_settings_is_refused(env: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        split_settings(env)


def boot(role: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Register the plugin as a process of the engine would, without the engine's modules."""
    code = (
        "import tetraspark.engine.plugin as plugin\n"
        f"plugin.process_role = lambda: {role!r}\n"
        "plugin.on_cuda = lambda: False\n"
        "plugin.apply_hooks = lambda hooks: None\n"
        "plugin.register(); print('booted')"
    )
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    path = ":".join([*(str(path_of(name)) for name in MODULES), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("role", ["server", "scheduler"])
def test_a_threshold_below_its_floor_ends_the_engine(role: str) -> None:
    result = boot(role, TETRASPARK_PREFILL_MIN_CONTEXT="32767", TETRASPARK_PREFILL_MIN_ROWS="1024")
    assert result.returncode == 1
    assert "booted" not in result.stdout
    receipt = json.loads(result.stdout.strip())
    assert receipt["tetraspark"] == "refused"
    assert "min_context = 32767: wanted at least 32768" in receipt["reasons"][0]


def test_a_split_on_the_cpu_ends_the_scheduler_and_not_the_server() -> None:
    asked = {"TETRASPARK_PREFILL_MIN_CONTEXT": "32768", "TETRASPARK_PREFILL_MIN_ROWS": "1024"}
    result = boot("scheduler", **asked)
    assert result.returncode == 1
    assert "this engine does not run on CUDA" in result.stderr
    result = boot("server", **asked)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("booted\n")
