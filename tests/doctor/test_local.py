"""A local line: the checks that make sense for this machine, through the same catalogue."""

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.serving import ROOT, write_site
from tetraspark.doctor import examine as module
from tetraspark.doctor.examine import examine
from tetraspark.errors import UsageError
from tetraspark.fleet.inside.look import look
from tetraspark.site.key_file import read_key
from tetraspark.site.load import LoadedSite, load_site


@pytest.fixture
def local(tmp_path: Path) -> LoadedSite:
    return load_site(write_site(tmp_path, "here"))


def test_this_machine_is_looked_at_without_a_runner(local: LoadedSite) -> None:
    report = examine(local, None)
    found = {one.id: one for one in report.checks}
    assert report.nodes == ("localhost",)
    for id in ("PYTHON.PRESENT", "ENGINE.VERSION", "PORT.API", "CHECKPOINT.SHARDS", "DISK.ROOM"):
        assert found[id].verdict == "ok", found[id]
    assert str(ROOT / "models/tiny") in found["CHECKPOINT.FOLDER"].observed
    assert found["MEMORY.AVAILABLE"].wanted == "MemAvailable of at least 6.0 GiB"
    assert not [id for id in found if id.startswith(("SSH", "DOCKER", "GPU", "RDMA", "IMAGE"))]


def test_a_model_folder_with_links_that_lead_nowhere(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(ROOT / "models" / "tiny", model)
    (model / "config.json").unlink()
    (model / "config.json").symlink_to(model / "config.json")
    (model / "lost").symlink_to(tmp_path / "absent")
    os.mkfifo(model / "pipe.safetensors")
    loaded = load_site(
        write_site(tmp_path, "here", {f'"{ROOT / "models" / "tiny"}"': f'"{model}"'})
    )
    found = {one.id: one for one in examine(loaded, None, ["CHECKPOINT"]).checks}
    assert (found["CHECKPOINT.CONFIG"].verdict, found["CHECKPOINT.CONFIG"].observed) == (
        "failed",
        "config.json: missing",
    )
    assert found["CHECKPOINT.LINKS"].observed.endswith(f"lost -> {tmp_path / 'absent'}")
    assert found["CHECKPOINT.SHARDS"].verdict == "ok"


def test_a_model_folder_in_which_nothing_is_seen(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    loaded = load_site(
        write_site(tmp_path, "here", {f'"{ROOT / "models" / "tiny"}"': f'"{model}"'})
    )
    found = {one.id: one for one in examine(loaded, None, ["CHECKPOINT"]).checks}
    assert found["CHECKPOINT.FOLDER"].verdict == "failed"
    assert found["CHECKPOINT.FOLDER"].fix == f"on localhost: ls -la {model}"


@pytest.mark.parametrize(
    ("mode", "text", "seen"),
    [
        (0o600, "hush\n", None),
        (0o644, "hush\n", "mode 644"),
        (0o600, "two words\n", "no key that a header can carry"),
        (0o600, "", "no key that a header can carry"),
        (0o600, None, "no such file"),
    ],
)
def test_the_key_file_is_judged_as_a_start_judges_it(
    tmp_path: Path, mode: int, text: str | None, seen: str | None
) -> None:
    file = tmp_path / "key"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    loaded = load_site(write_site(tmp_path, "here", {"port = 30000": 'port = 0\nkey_file = "key"'}))
    (found,) = (one for one in examine(loaded, None, ["API.KEY"]).checks if one.id == "API.KEY")
    if seen is None:
        assert (found.verdict, read_key(file)) == ("ok", "hush")
        return
    with pytest.raises(UsageError, match=seen):
        read_key(file)
    assert found.verdict == "failed" and found.fix
    assert found.observed.startswith(f"{file}: {seen}")
    assert "hush" not in f"{found}"


def test_a_port_that_is_taken_here_names_its_owner(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        changed = {"port = 30000": f"port = {port}"}
        loaded = load_site(write_site(tmp_path, "here", changed))
        (found,) = (one for one in examine(loaded, None, ["PORT"]).checks if one.id == "PORT.API")
    assert found.verdict == "failed"
    assert found.observed.startswith("taken by pid ")
    assert found.fix.startswith("sudo ss -ltnp")


def test_a_local_line_without_its_engine(
    local: LoadedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(links: list[str]) -> Any:
        """What the probe finds where other packages are installed."""
        return lambda request: look(request) | {"links": dict.fromkeys(links, "")}

    for links, seen in (([], "none"), (["/x/sglang-0.5.9.dist-info"], "sglang 0.5.9")):
        monkeypatch.setattr(module, "look", elsewhere(links))
        report = examine(local, None, ["ENGINE"])
        (found,) = (one for one in report.checks if one.id == "ENGINE.VERSION")
        assert (found.verdict, found.observed) == ("failed", seen)
        assert report.failed


def test_what_is_of_a_fleet_alone_is_refused(local: LoadedSite) -> None:
    with pytest.raises(UsageError, match="'GPU'; wanted: a check of a local line"):
        examine(local, None, ["GPU"])
    with pytest.raises(UsageError, match="a local line has no GPU to load"):
        examine(local, None, burn=True)
    with pytest.raises(UsageError, match="'node1'; wanted: one of localhost"):
        examine(local, None, nodes=["node1"])
