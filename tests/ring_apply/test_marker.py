"""The marker: its arguments, the bytes it gives the device, its lock, its end.

Linked with a stand-in of libmlx5 that writes down every call; not run on a ConnectX.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.ring_apply.machines import HERE, MARKER_C

READY = ("--device", "rocep1s0f0", "--mark", "10.10.1.11=0x88b5")


@pytest.fixture(scope="module")
def marker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The marker, compiled with every warning an error."""
    path = tmp_path_factory.mktemp("marker") / "marker"
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
    subprocess.run(["cc", *flags, "-o", path, MARKER_C, HERE / "fake_mlx5.c"], check=True)
    return path


def start(marker: Path, calls: Path, *words: str, fault: str = "") -> subprocess.Popen[str]:
    env = os.environ | {"MLX5_CALLS": str(calls), "MLX5_FAULT": fault}
    pipe = subprocess.PIPE
    return subprocess.Popen([marker, *words], env=env, stdout=pipe, stderr=pipe, text=True)


def test_it_links_with_the_real_libraries(tmp_path: Path) -> None:
    words = ["cc", "-O2", "-Wall", "-Werror", "-o", str(tmp_path / "marker"), str(MARKER_C)]
    subprocess.run([*words, "-lmlx5", "-libverbs"], check=True)
    ended = subprocess.run(
        [tmp_path / "marker", *READY], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1 and "no RDMA device rocep1s0f0" in ended.stderr


def test_the_bytes_of_two_marks_and_a_clean_end(marker: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    process = start(marker, calls, *READY, "--mark", "10.11.2.10=0x88b6")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    zeros = "00"
    mask = zeros * 6 + "ffff" + zeros * 52 + "ffffffff"
    value = zeros * 6 + "0800" + zeros * 52
    lines = calls.read_text().splitlines()
    # RDMA_TX is table 4; criteria 1 are the outer headers; action 3 is one of ibv_flow_action.
    assert lines == [
        "open rocep1s0f0",
        f"matcher type 0 priority 0 criteria 1 comp_mask 1 table 4 mask {mask}",
        "action table 4 bytes 10030010000088b5",
        f"flow actions 1 type 3 value {value}0a0a010b",
        "action table 4 bytes 10030010000088b6",
        f"flow actions 1 type 3 value {value}0a0b020a",
    ]
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=10) == ("", "") and process.returncode == 0
    assert calls.read_text().splitlines()[6:] == [
        "destroy flow left 4",
        "destroy action left 3",
        "destroy flow left 2",
        "destroy action left 1",
        "destroy matcher left 0",
        "close left 0",
    ]


@pytest.mark.parametrize("fault", ["matcher", "action", "flow"])
def test_a_device_that_refuses_is_left_as_it_was(marker: Path, tmp_path: Path, fault: str) -> None:
    process = start(marker, tmp_path / "calls", *READY, fault=fault)
    said, errors = process.communicate(timeout=10)
    assert (process.returncode, said) == (1, "")
    assert "takes no such rule: Operation not supported" in errors
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "close left 0"


def test_a_device_has_one_marker(marker: Path, tmp_path: Path) -> None:
    first = start(marker, tmp_path / "calls", *READY)
    assert first.stdout is not None and first.stdout.readline() == "ready\n"
    second = start(marker, tmp_path / "others", *READY)
    _, errors = second.communicate(timeout=10)
    assert second.returncode == 3 and "another marker has rocep1s0f0" in errors
    assert not (tmp_path / "others").exists(), "it did not touch the device"
    first.kill()
    first.communicate()
    third = start(marker, tmp_path / "calls", *READY)
    assert third.stdout is not None and third.stdout.readline() == "ready\n"
    third.terminate()
    third.communicate()
    assert third.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--device", "rocep1s0f0"),
        ("--mark", "10.0.0.1=0x88b5"),
        ("--device", "a/b", "--mark", "10.0.0.1=0x88b5"),
        ("--device", "a", "--device", "b", "--mark", "10.0.0.1=0x88b5"),
        ("--device", "a", "--mark", "10.0.0.1"),
        ("--device", "a", "--mark", "10.0.0.1=88b5"),
        ("--device", "a", "--mark", "10.0.0.1=0x"),
        ("--device", "a", "--mark", "10.0.0.1=0x0800"),
        ("--device", "a", "--mark", "10.0.0.1=0x10000"),
        ("--device", "a", "--mark", "10.0.0=0x88b5"),
        ("--device", "a", "--mark", "10.0.0.1=0x88b5 "),
        ("--device", "a", "--mark"),
        ("--port", "1"),
        ("--device", "a", *(("--mark", "10.0.0.1=0x88b5") * 9)),
    ],
)
def test_bad_arguments_touch_nothing(marker: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    process = start(marker, tmp_path / "calls", *words)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 2 and "wanted: --device NAME" in errors
    assert not (tmp_path / "calls").exists()


def test_a_device_of_another_make_is_refused(marker: Path, tmp_path: Path) -> None:
    process = start(marker, tmp_path / "calls", "--device", "rxe0", *READY[2:])
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 1 and "rxe0 is no mlx5 device" in errors
