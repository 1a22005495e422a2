"""The plugin in a fresh interpreter, with the engine's real hook registry."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.engine.cpu_engine import STANDINS, python
from tests.engine.shadow import shadow_engine
from tetraspark.engine.hooks import hooks_of


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return python("-c", code, **env)


def test_the_engine_finds_the_plugin_by_its_entry_point() -> None:
    from importlib.metadata import entry_points

    names = {point.name: point.value for point in entry_points(group="sglang.srt.plugins")}
    assert names["tetraspark"] == "tetraspark.engine.plugin:register"


@pytest.mark.engine
def test_a_key_file_guards_an_engine_started_by_hand(tmp_path: Path) -> None:
    """The commands that `plan` prints carry the key file and no run folder."""
    code = (
        "from sglang.srt.plugins import load_plugins; load_plugins();"
        "from sglang.srt.plugins.hook_registry import HookRegistry;"
        "print(len(HookRegistry._patched))"
    )
    result = run(code, TETRASPARK_API_KEY_FILE=str(tmp_path / "key"), SGLANG_PLUGINS="tetraspark")
    hooks = len(hooks_of("server", cuda=False))
    assert result.stdout.strip().splitlines()[-1] == str(hooks), result.stderr


def test_the_plugin_is_idle_in_an_engine_without_a_plan() -> None:
    code = (
        "from tetraspark.engine.plugin import register; register(); import sys;"
        "assert 'sglang.srt' not in sys.modules"
    )
    result = run(code)
    assert result.returncode == 0, result.stderr
    assert "plugin idle" in result.stderr


def test_the_plugin_imports_nothing_else_of_the_package() -> None:
    code = (
        "import sys, tetraspark.engine.plugin, tetraspark.engine.api_key;"
        "print(sorted(m for m in sys.modules if m.startswith('tetraspark.')"
        " and not m.startswith('tetraspark.engine') and not m.startswith('tetraspark.coll')))"
    )
    assert run(code).stdout.strip() == "[]"


@pytest.mark.engine
def test_hooks_of_the_server_are_applied_by_the_engines_own_loader(tmp_path: Path) -> None:
    code = (
        "from sglang.srt.plugins import load_plugins; load_plugins();"
        "from sglang.srt.plugins.hook_registry import HookRegistry;"
        "from sglang.srt.managers.detokenizer_manager import DetokenizerManager as Manager;"
        "from tetraspark.engine.guard_finish import around_trim;"
        "loop = {'type': 'stop', 'matched': 'repetition', 'repeated': {'period': 1}};"
        "text = 'a repetition it is';"
        "print(Manager.trim_matched_stop(None, text, loop, False));"
        "print(around_trim(Manager.trim_matched_stop, None, text, loop, False));"
        "print(sorted(HookRegistry._patched))"
    )
    result = run(code, TETRASPARK_RUN_DIR=str(tmp_path), SGLANG_PLUGINS="tetraspark")
    *_, engines, ours, _ = result.stdout.strip().splitlines()
    # The engine takes the reason's name for a stop string; the hook is what keeps the text.
    assert (engines.strip(), ours) == ("a", "a repetition it is"), result.stderr
    wanted = sorted(hook.target.path for hook in hooks_of("server", cuda=False))
    assert result.stdout.strip().splitlines()[-1] == str(wanted), result.stderr


@pytest.mark.engine
def test_a_drifted_engine_does_not_boot(tmp_path: Path) -> None:
    shadow = shadow_engine(
        tmp_path,
        "srt/entrypoints/http_server.py",
        "    # Set global states\n    set_global_state(",
        "    # Set the global states\n    set_global_state(",
    )
    code = (
        "import sglang; print(sglang.__path__[0]);"
        "from sglang.srt.plugins import load_plugins; load_plugins(); print('booted')"
    )
    result = run(
        code,
        PYTHONPATH=f"{shadow}:{STANDINS}",
        TETRASPARK_RUN_DIR=str(tmp_path),
        SGLANG_PLUGINS="tetraspark",
    )
    assert str(shadow) in result.stdout
    assert result.returncode == 1
    assert "booted" not in result.stdout
    assert "sglang.srt.entrypoints.http_server._setup_and_run_http_server" in result.stderr
    assert "re-check src/tetraspark/engine/api_key.py" in result.stderr
    receipt = next(line for line in result.stdout.splitlines() if line.startswith("{"))
    assert json.loads(receipt)["tetraspark"] == "refused"


@pytest.mark.parametrize(("text", "said"), [("", "is empty"), (None, "No such file")])
def test_a_named_key_file_without_a_key_stops_the_server(
    tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "key"
    if text is not None:
        file.write_text(text)
    code = "from tetraspark.engine.api_key import read_key; read_key(); print('open')"
    result = run(code, TETRASPARK_API_KEY_FILE=str(file))
    assert result.returncode == 1
    assert said in result.stderr
    assert "open" not in result.stdout
