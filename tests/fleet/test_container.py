"""What `docker inspect` says of a rank's container."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tetraspark.fleet.container import read_container, read_time
from tetraspark.line.failure import MEMORY_TEXT, first_failure

FOLDER = Path(__file__).parent / "inspect"


def recorded(name: str, **state: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    found["State"] |= state
    return found


def test_a_container_killed_for_memory_says_so_before_its_peers_words() -> None:
    container = read_container(recorded("oom_killed"))
    state = container.state(ahead=2.0)
    assert (state.rank, state.state, state.out_of_memory) == (2, "exited", True)
    assert state.image == "sha256:" + "5e" * 32
    assert state.exit is not None
    assert state.exit.code == 137
    assert state.exit.at == datetime(2026, 11, 30, 8, 10, 3, 500_000, UTC).timestamp()
    failure = first_failure([], [state], {})
    assert failure is not None
    assert (failure.rank, failure.text) == (2, MEMORY_TEXT)


def test_L50_a_restarted_container_is_a_failure_though_it_runs() -> None:
    state = read_container(recorded("restart_loop"), [(1, "S"), (7, "R")]).state(0.0)
    assert (state.state, state.restarts, state.pids) == ("restarted", 11, (1, 7))
    failure = first_failure([], [state], {})
    assert failure is not None
    assert failure.rank == 1
    assert "restarted 11 times" in failure.text


@pytest.mark.parametrize(
    ("status", "processes", "state", "running"),
    [
        ("running", [(1, "S"), (9, "R")], "running", True),
        ("running", [(1, "S"), (9, "T")], "frozen", True),
        ("running", [], "running", True),
        ("paused", [(1, "S")], "frozen", True),
        ("restarting", [], "restarted", True),
        ("created", [], "exited", False),
        ("exited", [], "exited", False),
        ("dead", [], "exited", False),
    ],
)
def test_states(status: str, processes: list[tuple[int, str]], state: str, running: bool) -> None:
    found = recorded("restart_loop", Status=status)
    container = read_container(found | {"RestartCount": 0}, processes)
    assert (container.state(0.0).state, container.running) == (state, running)


def test_zombies_are_no_live_processes() -> None:
    found = recorded("restart_loop") | {"RestartCount": 0}
    assert read_container(found, [(1, "S"), (8, "Z")]).state(0.0).pids == (1,)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0001-01-01T00:00:00Z", 0.0),
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01T01:00:10.25+01:00", 10.25),
        ("1969-12-31T23:00:10.123456789-01:00", 10.123456789),
    ],
)
def test_times_of_docker(text: str, seconds: float) -> None:
    assert read_time(text) == pytest.approx(seconds, abs=1e-6)


def test_what_is_no_container_is_told() -> None:
    with pytest.raises(ValueError, match="not what docker inspect prints"):
        read_container({"Id": "x"})
