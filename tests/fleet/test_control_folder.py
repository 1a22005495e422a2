"""The folder of ssh's sockets: private, and gone after its program, however that ended."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tetraspark.errors import RunError
from tetraspark.fleet.control_folder import ControlFolder

HOLD = """
from tetraspark.fleet.control_folder import ControlFolder
folder = ControlFolder()
print(folder.path, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_what_a_killed_program_left_is_removed_and_what_a_live_one_has_is_kept() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=pipe, stdout=pipe, text=True) as held:
        assert held.stdout is not None
        path = Path(held.stdout.readline().strip())
        assert path.name.startswith(f"{held.pid}-")
        first = ControlFolder()
        assert path.is_dir()
        held.send_signal(signal.SIGKILL)
        held.wait()
    assert path.is_dir()
    second = ControlFolder()
    assert not path.exists()
    assert first.path.is_dir() and second.path.is_dir()
    first.remove()
    second.remove()
    assert not first.path.exists() and not second.path.exists()


def test_only_its_user_can_enter(runtime: Path) -> None:
    folder = ControlFolder()
    assert folder.path.parent == runtime / "tetraspark"
    assert {one.stat().st_mode & 0o777 for one in (folder.path, folder.path.parent)} == {0o700}
    folder.remove()
    folder.path.parent.chmod(0o755)
    with pytest.raises(RunError, match="mode 755; wanted: a folder of user"):
        ControlFolder()


def test_without_a_runtime_folder_short_enough_it_is_in_tmp(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    folder = ControlFolder()
    assert folder.path.parent.parent == Path("/tmp")
    folder.remove()
