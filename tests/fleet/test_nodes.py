"""The fleet of the tests itself: nothing of it stays, whatever ends the tests."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.fleet.nodes import cgroups
from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.rack import remove_leftovers
from tests.fleet.nodes.requirements import missing, require_fleet
from tests.serving import ROOT

KILLED = """
import os, signal
from tests.fleet.nodes.rack import Rack
from tests.fleet.nodes.machine import Node
from pathlib import Path
rack = Rack()
key = rack.folder / "key.pub"
key.write_text("none")
node = Node(rack, 1, key)
node.power_on()
node.wait()
print(rack.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
V1 = "9:name=systemd:/\n4:memory:/a/b\n3:cpuset:/box\n2:cpu,cpuacct:/\n0::/\n"
MOUNTS = """\
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


def processes_that_name(text: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and int(folder.name) != os.getpid():
            found.append(line)
    return found


def traces(name: str) -> list[str]:
    """Return what is left of a fleet on this machine, by the name of its folder."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if name in line]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    groups = [str(one.folder / name) for one in cgroups.own_hierarchies()]
    return [
        *processes_that_name(name),
        *mounts,
        *(line for line in loops.splitlines() if name in line),
        *(path for path in groups if Path(path).exists()),
        *(str(path) for path in Path(tempfile.gettempdir()).glob(name)),
    ]


@pytest.mark.fleet
def test_nothing_stays_when_the_tests_are_killed(fleet: Fleet) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = Path(done.stdout.strip())
    deadline = time.monotonic() + 20
    while processes_that_name(folder.name) and time.monotonic() < deadline:
        time.sleep(0.1)
    remove_leftovers()
    assert traces(folder.name) == []
    assert traces(fleet.folder.name) != [], "the fleet of these tests is not to be touched"


@pytest.mark.fleet
def test_each_node_is_a_machine_of_its_own(fleet: Fleet) -> None:
    names = [node.exec("hostname").stdout.strip() for node in fleet.nodes]
    assert names == ["node1", "node2", "node3", "node4"]
    fleet[1].exec("touch", "/root/mark")
    assert not (fleet[2].root / "root/mark").exists()
    assert not Path("/root/mark").exists()
    assert fleet[1].exec("cat", "/proc/1/comm").stdout == "tini\n"


def test_what_is_missing_fails_in_ci_and_is_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name == "rsync" else name)
    assert "rsync" in missing()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"need.* rsync"):
        require_fleet()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match=r"need.* rsync"):
        require_fleet()


def test_cgroups_of_the_first_version_are_found_without_memory() -> None:
    found = cgroups.hierarchies(V1, MOUNTS)
    assert [(one.controllers, str(one.folder)) for one in found] == [
        ("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
        ("cpuset", "/sys/fs/cgroup/cpuset/box"),
    ]


def test_cgroups_of_the_second_version_are_found() -> None:
    mounts = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    (found,) = cgroups.hierarchies("0::/user/box\n", mounts)
    assert (found.controllers, str(found.folder)) == ("cgroup2", "/sys/fs/cgroup/user/box")
