"""Files that a person names: what may never end, and what is no file, is refused at once."""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.serving import write_site
from tetraspark.cli.main import app
from tetraspark.errors import UsageError

NOWHERE = ("--url", "http://127.0.0.1:1/v1", "--model", "m")
FLEET = str(Path(__file__).parents[2] / "sites" / "four-sparks-ring.toml")
VERBS = {
    "qualify check": ("qualify", "check", "{}"),
    "prefill": ("bench", "prefill", *NOWHERE, "--text", "{}"),
    "needle": ("needle", *NOWHERE, "--text", "{}"),
    "soak": ("soak", *NOWHERE, "--text", "{}"),
    "decode's key": ("bench", "decode", *NOWHERE, "--key-file", "{}"),
    "fabric show": ("fabric", "show", "--from", "{}"),
    "fabric nccl": ("fabric", "nccl", "--site", FLEET, "--from", "{}"),
    "ring plan": ("ring", "plan", "--from", "{}"),
    "ring simulate": ("ring", "simulate", "{}"),
    "ring diff": ("ring", "diff", "{}", "--site", FLEET),
    "weights verify": ("weights", "verify", "--site", FLEET, "--sums", "{}"),
    "report": ("report", "{}", "--out", "page.html"),
    "fetch": ("fetch", "--list", "--manifest", "{}"),
    "plan": ("plan", "--site", "{}"),
    "import-env": ("import-env", "{}"),
    "engine check": ("engine", "check", "--sglang", "{}"),
}
SIZE = 1 << 40
SECONDS = 20


@pytest.fixture(autouse=True)
def bounds() -> Iterator[None]:
    """Have what waits for a pipe, or takes all memory, fail here and hurt nobody else."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), hard))
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.fixture(params=["device", "pipe", "huge", "link loop", "link to a pipe"])
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A path to be read that never ends, in one of the ways there are."""
    path = tmp_path / "named"
    if request.param == "device":
        return Path("/dev/zero")
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "huge":
        path.touch()
        os.truncate(path, SIZE)
    elif request.param == "link loop":
        path.symlink_to(path)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    return path


def refusal(*words: str) -> UsageError:
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError), repr(result.exception)
    return result.exception


@pytest.mark.parametrize("verb", VERBS)
def test_what_never_ends_is_refused_unread(
    verb: str, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal(*(word.format(hostile) for word in VERBS[verb]))
    assert error.exit_code == 2
    (problem,) = error.problems
    assert problem.where == str(hostile)
    assert problem.seen and problem.wanted and problem.fix


@pytest.mark.parametrize("verb", [name for name in VERBS if name != "engine check"])
def test_a_folder_is_no_file(verb: str, tmp_path: Path) -> None:
    error = refusal(*(word.format(tmp_path) for word in VERBS[verb]))
    (problem,) = error.problems
    assert (problem.where, problem.seen) == (str(tmp_path), "a folder")


def test_stored_thresholds_that_never_end_are_refused(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    site = write_site(tmp_path, "here")
    words = ("tune", "--show", "--site", str(site))
    folder = tmp_path / "state" / "_thresholds"
    folder.mkdir(parents=True)
    stored = folder / "shm-w4-l1-m0-0123456789abcdef.json"
    stored.symlink_to(hostile)
    (problem,) = refusal(*words).problems
    assert problem.where == str(stored) and "tetraspark tune" in problem.wanted


def test_a_checkpoint_whose_config_never_ends_is_refused(hostile: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").symlink_to(hostile)
    words = ("--local", str(model), "--out", str(tmp_path / "out"), "--rank", "0", "--tp", "4")
    (problem,) = refusal("pack", *words).problems
    assert problem.where == str(model / "config.json")
