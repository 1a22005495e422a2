"""The guards on `/v1/messages` and `/v1/responses`, on the engine's own routes and types."""

import json
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cpu_engine import STANDINS, python
from tetraspark.engine.guard_hooks import GUARD_HOOKS
from tetraspark.engine.hooks import hooks_of

ROOT = Path(__file__).parents[2]
(RESPONSES,) = (hook for hook in GUARD_HOOKS if hook.needs)


@pytest.fixture(scope="module")
def answers() -> Any:
    """What the requests of dialect_client.py came to, with limits and without."""
    paths = f"{STANDINS}:{ROOT}:{ROOT / 'src'}"
    done = python("-m", "tests.engine.dialect_client", PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def guarded(answers: Any) -> Any:
    return answers["guarded"]


@pytest.mark.engine
def test_messages_are_held_to_the_cap_and_told_it(guarded: Any) -> None:
    more, less = guarded["messages, more"], guarded["messages, less"]
    assert (more["told"], more["tokens"]) == ("100; limit; asked=1000000", [100])
    assert (less["told"], less["tokens"]) == ("9; asked", [9])
    assert (more["status"], "nothing here generates" in more["text"]) == (400, True)


@pytest.mark.engine
def test_responses_are_held_to_the_cap_and_told_it(guarded: Any) -> None:
    more, less = guarded["responses, more"], guarded["responses, less"]
    assert (more["told"], more["tokens"]) == ("100; limit; asked=1000000", [100, 98])
    assert (less["told"], less["tokens"]) == ("9; asked", [9, 7])
    none = guarded["responses, none"]
    assert (none["told"], none["tokens"]) == ("40; default", [None, None])
    assert json.loads(less["text"])["max_output_tokens"] == 9


@pytest.mark.engine
def test_the_engines_own_answers_are_the_same_but_for_the_header(
    answers: Any, guarded: Any
) -> None:
    own = answers["own"]
    assert {one["told"] for one in own.values()} == {None}
    assert own["responses, more"]["tokens"] == [10**6, 10**6 - 2]
    stream = guarded["responses, stream"]
    assert stream == own["responses, stream"] | {"told": "40; default"}
    assert (stream["kind"], stream["cache"]) == ("text/event-stream", "no-cache")
    assert stream["text"] == "event: one\ndata: {}\n\n"
    told, same = (json.loads(found["responses, less"]["text"]) for found in (guarded, own))
    assert list(told) == list(same)
    assert {**told, "id": 0} == {**same, "id": 0}


def test_responses_are_hooked_where_the_engine_can_import_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert RESPONSES not in hooks_of("server", cuda=False)
    (tmp_path / "openai_harmony.py").touch()
    invalidate_caches()
    assert RESPONSES in hooks_of("server", cuda=False)
    assert RESPONSES not in hooks_of("scheduler", cuda=False)
