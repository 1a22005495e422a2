"""Every verb about a line whose records on disk are damaged: told by name, nothing lost."""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.serving import write_site
from tetraspark.cli.main import app
from tetraspark.errors import TetrasparkError
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.rank import RankCommand
from tetraspark.line.local_plan import local_plan
from tetraspark.line.run import Run, RunStore
from tetraspark.site.load import load_site

NAME = "hurt"
DAMAGE = {
    "empty": b"",
    "cut off": b'{"phase": "rea',
    "no JSON": b"ready\n",
    "binary": bytes(range(256)),
    "null": b"null",
    "a list": b"[1, 2]",
    "an object": b"{}",
    "deep": b"[" * 100_000,
    "deep inside": b'{"acts": ' + b'{"a":' * 5_000,
    "long number": b'{"phase": ' + b"9" * 5_000 + b"}",
    "huge": b'{"phase": "' + b"x" * (2 << 20) + b'"}',
    "types": json.dumps(
        {"phase": 7, "ranks": "all", "url": [], "acts": 5, "state": {}, "at": "noon", "url_": 1}
    ).encode(),
    "types inside": json.dumps(
        {"phase": "ready", "since": [], "ranks": [3], "acts": [5], "tolerated": ["x"], "at": None}
    ).encode(),
}
RUN_FILES = ("plan.json", "state.json", "effective.json", "rank0.exit", "rank0.collectives.json")
LINE_FILES = ("watch.json", "watch-acts.json", "watch-page.json")
VERBS = {
    "status": ("status",),
    "status --json": ("status", "--json"),
    "smoke": ("smoke", "--timeout", "1"),
    "logs": ("logs",),
    "watch --once": ("watch", "--once"),
    "stop": ("stop",),
    "stop --line": ("stop", "--line", NAME),
    "receipts": ("receipts", "list"),
    "rollback": ("rollback", "--dry-run"),
}
TELLS = {
    "plan.json": (
        "status",
        "status --json",
        "smoke",
        "logs",
        "watch --once",
        "stop",
        "stop --line",
    ),
    "state.json": ("status", "status --json", "watch --once", "stop", "stop --line"),
    "effective.json": ("status", "status --json"),
    "rank0.exit": ("status", "status --json", "logs", "watch --once"),
    "rank0.collectives.json": ("status", "status --json"),
    "watch.json": ("status", "status --json"),
    "watch-acts.json": ("status", "status --json", "watch --once"),
    "watch-page.json": (),
}


class Hurt:
    """A line with one run that has ended, and the verbs of the command in this process."""

    def __init__(self, folder: Path) -> None:
        self.site = write_site(folder, NAME)
        self.store = RunStore(NAME, folder / "state")
        self.run: Run = self.store.create(
            local_plan(load_site(self.site), LocalRunner().inventory(4))
        )
        self.run.record(phase="ready")
        (self.run.folder / "rank0.log").write_text("hello\n")

    def path(self, name: str) -> Path:
        return (self.run.folder if name in RUN_FILES else self.store.root) / name

    def verb(self, *words: str) -> tuple[int, str]:
        """Return the exit code and all that was printed; a traceback is raised."""
        result = CliRunner().invoke(app, [*words, "--site", str(self.site)])
        error = result.exception
        if isinstance(error, TetrasparkError):
            return error.exit_code, f"{result.output}\n{error}"
        if error is not None and not isinstance(error, SystemExit):
            raise error
        return result.exit_code, result.output


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hurt]:
    monkeypatch.setenv("TETRASPARK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "400")
    yield Hurt(tmp_path)
    LocalRunner().stop(tmp_path / "state", 0.0)


def kept(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", [*RUN_FILES, *LINE_FILES])
def test_damage_is_told_by_the_files_name_and_nothing_is_lost(
    line: Hurt, name: str, damage: str
) -> None:
    path = line.path(name)
    path.write_bytes(DAMAGE[damage])
    for title, words in VERBS.items():
        code, said = line.verb(*words)
        assert code in (0, 1, 2), (title, said)
        if title in TELLS[name] and path.exists() and path.read_bytes() == DAMAGE[damage]:
            assert str(path) in said, (title, said)
        assert DAMAGE[damage] in kept(line.store.root), title


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link to nothing", "a link to itself"])
@pytest.mark.parametrize("name", [*RUN_FILES, *LINE_FILES])
def test_what_is_no_file_is_told_and_holds_nothing_up(line: Hurt, name: str, kind: str) -> None:
    path = line.path(name)
    path.unlink(missing_ok=True)
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name if kind == "a link to itself" else "nowhere")
    told = [words for title, words in VERBS.items() if title in TELLS[name][:1]]
    for words in [*told, VERBS["stop --line"], VERBS["watch --once"], VERBS["logs"]]:
        code, said = line.verb(*words)
        assert code in (0, 1, 2), said
    assert any(one.name.startswith(path.name) for one in path.parent.iterdir())


def test_a_bundle_of_a_damaged_run_holds_the_damage(line: Hurt, tmp_path: Path) -> None:
    for name in (*RUN_FILES, *LINE_FILES):
        line.path(name).write_bytes(DAMAGE["deep inside"])
    code, said = line.verb("support-bundle", "--out", str(tmp_path / "bundle.tar.gz"))
    assert code == 0, said
    with tarfile.open(tmp_path / "bundle.tar.gz") as bundle:
        texts = {
            Path(one.name).name: (bundle.extractfile(one) or io.BytesIO()).read().decode()
            for one in bundle.getmembers()
            if one.isfile()
        }
    assert "Traceback" not in texts["status.json"]
    assert json.loads(texts["status.json"])["verdict"] == "unknown"
    assert all(DAMAGE["deep inside"].decode()[:1000] in texts[name] for name in RUN_FILES[:3])


def test_a_line_with_a_damaged_state_is_not_called_ready_or_down(line: Hurt) -> None:
    """Its ranks run; whether they were proven is what the record would tell."""
    commands = [RankCommand(rank, f"node{rank}", ("sleep", "300"), (), 0) for rank in range(4)]
    LocalRunner().start(commands, line.run.folder)
    line.path("state.json").write_bytes(b"{")
    code, said = line.verb("status", "--json")
    told = json.loads(said[said.index('{\n "line"') :])
    assert (code, told["verdict"]) == (1, "unknown")
    assert "how far their start came is not known" in told["reason"]
    assert told["damaged"][0]["where"] == str(line.path("state.json"))
    assert len(told["ranks"]) == 4 and all(one["state"] == "running" for one in told["ranks"])


def test_logs_are_shown_without_a_plan(line: Hurt) -> None:
    (line.run.folder / "rank2.log").write_text("third\n")
    line.path("plan.json").write_bytes(b"")
    code, said = line.verb("logs")
    assert code == 0
    assert "rank 0 | hello" in said and "rank 2 | third" in said
