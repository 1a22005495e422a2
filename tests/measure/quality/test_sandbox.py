"""The sandbox holds, is refused where it does not, and ends with what runs in it."""

import contextlib
import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.measure.quality.sandboxes import needed
from tetraspark.errors import RunError
from tetraspark.measure.quality import proof, sandbox
from tetraspark.measure.quality.inside.probe import ATTEMPTS
from tetraspark.measure.quality.proof import Proven, prove
from tetraspark.measure.quality.sandbox import Limits, run_inside

ENTER = sandbox.program("enter")
NAMES = {one.__name__ for one in ATTEMPTS}


def weakened(old: str, new: str) -> Callable[[str], str]:
    """Return a `program` that gives a sandbox with a hole."""
    assert ENTER.count(old) == 1, old
    text = ENTER.replace(old, new)
    whole = sandbox.program
    return lambda name: text if name == "enter" else whole(name)


def refusal() -> str:
    with pytest.raises(RunError) as caught:
        prove()
    (problem,) = caught.value.problems
    assert problem.fix
    return problem.seen


def test_nothing_gets_out() -> None:
    assert isinstance(needed(), Proven)


@pytest.mark.parametrize(
    ("left_out", "names"),
    [
        ("--net", {"tcp_loopback", "udp_loopback", "abstract_socket", "touched"}),
        ("--pid", {"see_processes"}),
    ],
)
def test_a_namespace_left_out_is_found(
    monkeypatch: pytest.MonkeyPatch, left_out: str, names: set[str]
) -> None:
    needed()
    kept = tuple(one for one in sandbox.NAMESPACES if one != left_out)
    monkeypatch.setattr(sandbox, "NAMESPACES", kept)
    seen = refusal()
    assert all(f"{name}: " in seen for name in names), seen


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("        resource.setrlimit(getattr", "        getattr(resource, name) and (getattr",
         "fork_many"),
        ("        resource.setrlimit(getattr", "        getattr(resource, name) and (getattr",
         "use_memory"),
        ("    refuse_calls()\n", "", "keep_memory"),
        ('mode=777,size={room}"', 'mode=777"', "fill_disk"),
        ("    lock(place)\n", "    os.chmod(view, 0o777)\n", "write_files"),
        ('os.execve(told["python"], argv, {', 'os.execve(told["python"], argv, {"SECRET": "1", ',
         "see_environment"),
        ("LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)", "uid = None", "gain_powers"),
    ],
)  # fmt: skip
def test_a_hole_is_found(monkeypatch: pytest.MonkeyPatch, old: str, new: str, name: str) -> None:
    needed()
    monkeypatch.setattr(sandbox, "program", weakened(old, new))
    assert f"{name}: " in refusal()


def test_a_home_that_is_shown_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With canaries that anybody may read: no file mode may be what protects them."""
    needed()
    plain = proof._canary

    @contextlib.contextmanager
    def readable(folder: str) -> Iterator[str]:
        with plain(folder) as file:
            Path(file).chmod(0o644)
            yield file

    # Not below /tmp, which is the sandbox's own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        Path(home).chmod(0o755)
        monkeypatch.setenv("HOME", home)
        shown = [*sandbox._shown(), home]
        monkeypatch.setattr(sandbox, "_shown", lambda: shown)
        monkeypatch.setattr(proof, "_canary", readable)
        assert f"read_files: read {home}" in refusal()


def test_a_caller_who_shares_nothing_has_a_sandbox_too() -> None:
    """With umask 077, folders made on the way to the interpreter would be closed."""
    needed()
    before = os.umask(0o077)
    try:
        prove()
    finally:
        os.umask(before)


@pytest.mark.parametrize("folder", ["/tmp", "/", "/usr"])
def test_it_is_proven_from_any_folder(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    needed()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", "/nonexistent")
    prove()


def test_keys_of_the_caller_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    needed()
    keyctl, add_key = {"x86_64": (250, 248), "aarch64": (219, 217)}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    kind, name = b"user", f"tetraspark-test-{os.getpid()}".encode()
    joined = libc.syscall(keyctl, 1, None)
    if joined < 0:
        assert ctypes.get_errno() in (errno.ENOSYS, errno.EPERM)  # there are no keys here
        return
    assert libc.syscall(add_key, kind, name, b"secret", ctypes.c_size_t(6), -3) > 0
    search = (
        f"import ctypes; print(ctypes.CDLL(None).syscall({keyctl}, 10, -3, {kind!r}, {name!r}, 0))"
    )
    assert run_inside(search, {}).output == "-1\n"
    monkeypatch.setattr(sandbox, "program", weakened("    leave_keys()\n", ""))
    assert int(run_inside(search, {}).output) > 0


def test_an_attempt_that_was_not_made_is_no_proof() -> None:
    with pytest.raises(RunError, match="not tried: fill_disk"):
        Proven.after({"tried": sorted(NAMES - {"fill_disk"}), "escaped": {}})
    with pytest.raises(RunError, match="touched: udp"):
        Proven.after({"tried": sorted(NAMES), "escaped": {"touched": "udp was reached"}})


def test_no_sandbox_is_made_but_by_the_proof() -> None:
    with pytest.raises(TypeError, match="prove"):
        Proven(object())


def test_without_unshare_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal() == "unshare is not there"


def test_a_kernel_that_makes_no_namespaces_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2; exit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert "unshare failed: Operation not permitted" in refusal()


def test_what_cannot_be_shown_is_told_and_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    needed()
    monkeypatch.setattr(sandbox, "_shown", lambda: ["/not/there"])
    assert "mount" in refusal()


def test_the_wall_time_ends_all_processes(tmp_path: Path) -> None:
    needed()
    mark = f"sleeper-{os.getpid()}"
    text = (
        f"import os, sys, time\nmark = '{mark}'\n"
        "for _ in range(3):\n    if not os.fork(): os.setsid(); time.sleep(60)\n"
        "print('begun', flush=True); time.sleep(60)\n"
    )
    began = time.monotonic()
    ran = run_inside(text, {}, Limits(seconds=1.0))
    assert ran.late
    assert time.monotonic() - began < 8
    assert ran.output == "begun\n"
    deadline = time.monotonic() + 5
    while running(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running(mark) == []


def running(mark: str) -> list[str]:
    """Return the processes of this machine with a word in their command."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if mark.encode() in text and b"pytest" not in text:
            found.append(file.parent.name)
    return found


def test_processor_time_ends_it_too() -> None:
    needed()
    ran = run_inside("while True: pass", {}, Limits(seconds=60.0, cpu_seconds=1))
    assert not ran.late


def test_a_flood_of_output_is_cut() -> None:
    needed()
    ran = run_inside("while True: print('x' * 1000)", {}, Limits(file=20_000))
    assert len(ran.output) == 20_000


def test_files_are_gone_afterwards() -> None:
    needed()
    text = "import os; print(os.listdir('/tmp')); open('/tmp/kept', 'w').close()"
    assert [run_inside(text, {}).output for _ in range(2)] == ["[]\n", "[]\n"]


def test_it_holds_for_an_ordinary_user_too() -> None:
    """As root this test becomes one; where Python itself is in root's home, it is shown to it."""
    needed()
    if os.geteuid():
        return
    unshare, mounted = shutil.which("unshare"), Path(sys.base_prefix)
    assert unshare is not None
    become = (
        "import os, tempfile\n"
        "from tetraspark.measure.quality.proof import prove\n"
        "from tetraspark.measure.quality.sandbox import run_inside\n"
        "import encodings.idna, multiprocessing\n"
        "os.chdir('/'); os.setgroups([]); os.setresgid(*[23456] * 3); os.setresuid(*[23456] * 3)\n"
        "prove()\n"
        "print(run_inside('import os; print(os.getuid())', {}).output)\n"
    )
    # A tmpfs over root's home, in which nothing but the interpreter is.
    hide = (
        'mkdir -p "$1" && mount --bind "$0" "$1" && mount -t tmpfs -o mode=755 none "$2" && '
        'mkdir -p "$0" && mount --bind "$1" "$0" && shift 2 && exec "$@"'
    )
    home = Path.home()
    inside_home = mounted.is_relative_to(home)
    prefix = ["sh", "-c", hide, str(mounted), "/mnt", str(home)] if inside_home else []
    done = subprocess.run(
        [unshare, "--mount", *prefix, sys.executable, "-c", become],
        env={**os.environ, "HOME": "/nonexistent", "TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0"


def test_the_probe_is_plain_json_whatever_it_finds() -> None:
    needed()
    with proof._bait() as (request, touched):
        reply = json.loads(run_inside(sandbox.program("probe"), request).output)
        assert touched() == ""
    assert set(reply["tried"]) == NAMES
    assert reply["escaped"] == {}
