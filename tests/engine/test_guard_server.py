"""The hooks of guards that need no engine: the key's gate, and a scheduler's requests."""

import asyncio
from array import array
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tetraspark.engine import guard_finish, guard_scheduler, guard_server
from tetraspark.engine.api_key import KeyGate
from tetraspark.engine.guard_env import GuardSettings
from tetraspark.engine.guard_loop import Loop

KEY = "sk-one"


def through_the_gate(scope: dict[str, Any]) -> list[Any]:
    """Return what a client gets: the gate's own messages, or "app" when it was let through."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        sent.append("app")

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(KeyGate(app, KEY)(scope, None, send))
    return sent


@pytest.mark.parametrize("header", [b"", b"Bearer sk-two", b"Bearer ", b"sk-one", b"Bearer \xff"])
def test_a_socket_without_the_key_is_closed(header: bytes) -> None:
    headers = [(b"authorization", header)] if header else []
    (closed,) = through_the_gate({"type": "websocket", "headers": headers})
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


def test_a_socket_with_the_key_is_the_engines() -> None:
    for scheme in ("Bearer", "bearer"):
        headers = [(b"authorization", f"{scheme} {KEY}".encode())]
        assert through_the_gate({"type": "websocket", "headers": headers}) == ["app"]
    assert through_the_gate({"type": "lifespan"}) == ["app"]


def test_a_key_that_is_not_ascii_is_401_and_no_fault_of_the_server() -> None:
    start, body = through_the_gate({"type": "http", "headers": [(b"authorization", b"B \xe9")]})
    assert start["status"] == 401
    assert body["body"] == b'{"error":"Unauthorized"}'
    headers = [(b"authorization", b"Bearer wrong")]
    assert through_the_gate({"type": "http", "headers": headers}) == ["app"]


@pytest.mark.parametrize("other", [b"Bearer \xe9", b"Bearer sk-two", f"Bearer {KEY}".encode()])
@pytest.mark.parametrize("first", [False, True])
def test_more_than_one_key_is_none(other: bytes, first: bool) -> None:
    keys = [other, f"Bearer {KEY}".encode()]
    headers = [(b"authorization", key) for key in (keys if first else reversed(keys))]
    start, _ = through_the_gate({"type": "http", "headers": headers})
    assert start["status"] == 401
    (closed,) = through_the_gate({"type": "websocket", "headers": headers})
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ((None, None), "300; default"),
        ((None, 0), "0; asked"),
        ((0, 0), "0; asked"),
        ((0, None), "300; default"),
        ((0, 5), "5; asked"),
        ((5, 2000), "5; asked"),
        ((2000, 5), "1000; limit; asked=2000"),
        ((None, -1), None),
        ((-1, 5), None),
        ((0, -3), None),
        ((5, -1), "5; asked"),
    ],
)
def test_the_header_is_about_the_field_that_the_engine_takes(
    fields: tuple[int | None, int | None], told: str | None
) -> None:
    request = SimpleNamespace(max_completion_tokens=fields[0], max_tokens=fields[1])
    limits = GuardSettings(max_new_tokens=1000, default_new_tokens=300)
    assert guard_server.cap_request(request, guard_server.CHAT_CAPS, limits) == told
    assert (request.max_completion_tokens or request.max_tokens or 0) <= 1000
    if told != "1000; limit; asked=2000":
        assert (request.max_completion_tokens, request.max_tokens) == fields


@dataclass
class Request:
    """What the guards touch of the engine's `Req`."""

    ignore_eos: bool = False
    max_new_tokens: int | None = None
    output_ids: "array[int]" = field(default_factory=lambda: array("q"))
    finished_reason: Any = None
    finished_len: int | None = None
    rid: str = "one"
    tokenizer: Any = None

    @property
    def sampling_params(self) -> "Request":
        return self

    def finished(self) -> bool:
        return self.finished_reason is not None

    def accept(self, *tokens: int) -> None:
        """Take a step's tokens, as the engine does."""
        self.output_ids.extend(tokens)
        guard_scheduler.after_update_finish_state(None, self, len(tokens))


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(guard_finish, "finish_repetition", lambda loop: loop)
    monkeypatch.setattr(guard_scheduler, "_ends_line", {})
    yield guard_scheduler.use(GuardSettings(max_new_tokens=1000, default_new_tokens=300))
    guard_scheduler.use(None)


def test_a_loop_that_ends_within_an_accepted_draft_ends_at_its_token() -> None:
    request = Request()
    for _ in range(12):
        request.accept(7, 7, 7, 7, 7)
    assert not request.finished()
    request.accept(7, 7, 7, 7, 8)
    assert request.finished_reason == Loop(1, 64)
    assert (request.finished_len, len(request.output_ids)) == (64, 65)


def test_tokens_that_were_taken_back_are_read_anew() -> None:
    request = Request()
    request.accept(*[7] * 60)
    request.output_ids = array("q", [7] * 10)
    for _ in range(53):
        request.accept(7)
    assert not request.finished()
    request.accept(7)
    assert request.finished_len == 64


def test_who_asks_to_go_on_goes_on() -> None:
    request = Request(ignore_eos=True)
    request.accept(*[7] * 500)
    assert not request.finished()
    guard_scheduler.use(GuardSettings(loop_abort=False))
    other = Request()
    other.accept(*[7] * 500)
    assert not other.finished()


def test_lines_are_told_by_the_tokenizer_asked_once() -> None:
    asked: list[int] = []

    def decode(tokens: list[int]) -> str:
        asked.extend(tokens)
        return "\n" if tokens == [0] else "word"

    request = Request(tokenizer=SimpleNamespace(decode=decode))
    row = [*range(1, 12), 0]
    for _ in range(31):
        request.accept(*row)
    assert not request.finished()
    request.accept(*row)
    assert request.finished_reason == Loop(12, 32)
    assert len(asked) == len(set(asked)) == 12


@pytest.mark.parametrize(("asked", "given"), [(None, 300), (9, 9), (5000, 1000)])
def test_the_scheduler_caps_whatever_route_a_request_took(asked: int | None, given: int) -> None:
    request = Request(max_new_tokens=asked)
    guard_scheduler.before_init_max_new_tokens(None, request)
    assert request.max_new_tokens == given


def test_without_limits_nothing_is_touched() -> None:
    guard_scheduler.use(None)
    request = Request(max_new_tokens=None)
    guard_scheduler.before_init_max_new_tokens(None, request)
    request.accept(*[7] * 100)
    assert (request.max_new_tokens, request.finished()) == (None, False)


def test_the_name_of_the_reason_is_no_stop_string() -> None:
    def engines(manager: Any, text: str, reason: dict[str, Any], trim: bool) -> str:
        return text[: text.find(str(reason["matched"]))]

    reason = {"type": "stop", "matched": "repetition", guard_finish.MARK: {"period": 1}}
    text = "no repetition here"
    assert guard_finish.around_trim(engines, None, text, reason, False) == text
    stop = {"type": "stop", "matched": "here"}
    assert guard_finish.around_trim(engines, None, text, stop, False) == "no repetition "
