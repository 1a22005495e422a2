"""The burn: a command as a value, its output, and when it is refused."""

import json
import subprocess
import sys

import pytest

from tests.doctor.stand import GPU_PROCESSES, Stand
from tetraspark.doctor.burn import Burn, burn_command, read_burn
from tetraspark.fleet.command import Result

SOUND = '{"tflops": 61.23, "clocks": ["2200", "72.13"]}\n'


def test_the_command_is_one_container_of_the_lines_image(stand: Stand) -> None:
    image = stand.loaded.site.image
    assert image is not None
    command = burn_command(image, "four")
    assert str(command) == (
        "docker run --rm --interactive --gpus=all --network=none --pull=never "
        "--name=tetraspark-four-burn --entrypoint=python3 four:1 - 10"
    )
    assert isinstance(command.stdin, bytes)
    compile(command.stdin, "burn.py", "exec")


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (Result(0, SOUND, ""), Burn(61.23, 2200.0, 72.13)),
        (Result(0, f"a warning of torch\n{SOUND}", "noise"), Burn(61.23, 2200.0, 72.13)),
        (Result(0, '{"tflops": 60, "clocks": ["2200", "[N/A]"]}', ""), Burn(60.0, 2200.0, None)),
        (Result(0, '{"tflops": 60, "clocks": []}', ""), Burn(60.0, None, None)),
        (Result(125, "", "docker: Error: could not select device driver"),
         "ended with 125: docker: Error: could not select device driver"),
        (Result(1, SOUND, ""), "ended with 1: " + SOUND.strip()),
        (Result(0, "", ""), "ended with 0: nothing"),
        (Result(0, "[1]", ""), "ended with 0: [1]"),
        (Result(0, '{"tflops": NaN, "clocks": []}', ""), "said nan TFLOPS"),
    ],
)  # fmt: skip
def test_what_the_program_prints_or_why_there_is_nothing(result: Result, found: object) -> None:
    assert read_burn(result) == found


def test_the_program_says_so_where_there_is_no_gpu(stand: Stand) -> None:
    image = stand.loaded.site.image
    assert image is not None
    program = burn_command(image, "four").stdin
    assert isinstance(program, bytes)
    argv = [sys.executable, "-", "1"]
    done = subprocess.run(argv, input=program, capture_output=True, check=False)
    found = read_burn(Result(done.returncode, done.stdout.decode(), done.stderr.decode()))
    assert isinstance(found, str)
    assert found.startswith("ended with 1: ")


def burns(stand: Stand) -> dict[str | None, tuple[str, str]]:
    found = stand.examine("TIME", burn=True).checks
    return {one.node: (one.verdict, one.observed) for one in found if one.id == "BURN.CLOCK"}


def test_all_are_burned_at_once_with_what_else_was_asked_for(stand: Stand) -> None:
    assert {verdict for verdict, _ in burns(stand).values()} == {"ok"}
    assert len(stand.ran) == 4


def test_without_being_asked_for_nothing_is_run(stand: Stand) -> None:
    stand.examine()
    assert stand.ran == []


def test_a_line_that_runs_is_not_disturbed(stand: Stand) -> None:
    row = {"Names": "tetraspark-four-r2", "State": "running", "Status": "Up"}
    stand[3].say("docker ps", json.dumps(row) + "\n")
    found = burns(stand)
    assert stand.ran == []
    assert found["spark1"] == (
        "unknown", "not measured: refused, spark3: the line runs there",
    )  # fmt: skip
    assert stand.examine("TIME", burn=True).failed


def test_a_gpu_in_use_or_one_that_cannot_be_seen_is_not_loaded(stand: Stand) -> None:
    stand[2].say("gpu processes", f"{GPU_PROCESSES}7, python3, 10 MiB\n")
    stand[4].say("gpu processes", rc=9, stderr="NVIDIA-SMI has failed")
    verdict, observed = burns(stand)["spark1"]
    assert verdict == "unknown"
    assert observed == (
        "not measured: refused, spark2: pid 7 (python3), 10 MiB; spark4: NVIDIA-SMI has failed"
    )
    assert stand.ran == []


def test_a_node_that_could_not_burn_is_told_and_the_others_are_judged(stand: Stand) -> None:
    stand[2].burn = Result(125, "", "docker: no such image")
    found = burns(stand)
    assert found["spark2"] == ("unknown", "not measured: ended with 125: docker: no such image")
    assert found["spark1"][0] == "ok"
