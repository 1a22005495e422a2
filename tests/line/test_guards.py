"""Limits on requests, as clients of the real engine meet them."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.line.conftest import GUARDS, KEY
from tests.serving import Command
from tetraspark.engine.guard_env import EFFORTS

pytestmark = pytest.mark.engine
LIMIT, DEFAULT = GUARDS["max_new_tokens"], GUARDS["default_new_tokens"]
SAME = {"logit_bias": {"300": 100}, "temperature": 0}
"""Makes any model say one token for ever."""


@pytest.fixture(scope="module")
def client(served: Any) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=served["url"], headers=headers, timeout=300) as client:
        yield client


def chat(client: httpx.Client, **fields: Any) -> httpx.Response:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "What is 19 + 23?"}]}
    return client.post("/chat/completions", json=body | fields)


def told(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return response.headers["X-Tetraspark-Max-Tokens"]


def test_more_tokens_than_the_limit_are_clamped_and_the_client_is_told(
    client: httpx.Client,
) -> None:
    assert told(chat(client, max_tokens=10**6)) == f"{LIMIT}; limit; asked=1000000"
    assert told(chat(client, max_completion_tokens=LIMIT + 1)).startswith(f"{LIMIT}; limit")
    assert told(chat(client, max_tokens=9)) == "9; asked"
    body = {"model": "tiny", "prompt": "a rank", "max_tokens": LIMIT + 7, "stop": ["e"]}
    assert told(client.post("/completions", json=body)).startswith(f"{LIMIT}; limit")


@pytest.mark.parametrize("none", [0, False])
def test_who_asks_for_no_token_gets_none_and_is_told_so(client: httpx.Client, none: int) -> None:
    response = chat(client, max_tokens=none)
    assert told(response) == "0; asked"
    assert response.json()["usage"]["completion_tokens"] == 0
    absent = chat(client, max_completion_tokens=none, ignore_eos=True, temperature=0)
    assert told(absent) == f"{DEFAULT}; default"
    assert absent.json()["usage"]["completion_tokens"] == DEFAULT
    assert told(chat(client, max_completion_tokens=none, max_tokens=5)) == "5; asked"


def test_fewer_tokens_than_none_are_the_engines_to_refuse(client: httpx.Client) -> None:
    for fields in ({"max_tokens": -1}, {"max_completion_tokens": -1, "max_tokens": 5}):
        response = chat(client, **fields)
        assert response.status_code == 400
        assert "max_new_tokens must be at least 0, got -1" in response.text
        assert "X-Tetraspark-Max-Tokens" not in response.headers


def test_responses_are_clamped_and_told_their_cap_too(client: httpx.Client) -> None:
    body = {"model": "tiny", "input": "What is 19 + 23?"}
    more = client.post("/responses", json=body | {"max_output_tokens": 10**6})
    assert told(more) == f"{LIMIT}; limit; asked=1000000"
    assert more.json()["usage"]["output_tokens"] <= LIMIT
    assert more.json()["output"][0]["content"][0]["text"]
    streamed = client.post("/responses", json=body | {"max_output_tokens": 9, "stream": True})
    assert told(streamed) == "9; asked"
    assert "event: response.completed" in streamed.text
    refused = client.post("/responses", json=body | {"max_output_tokens": -1})
    assert (refused.status_code, refused.headers.get("X-Tetraspark-Max-Tokens")) == (400, None)


@pytest.mark.parametrize("other", [b"Bearer \xe9", b"Bearer wrong", f"Bearer {KEY}".encode()])
def test_two_keys_are_401_and_no_fault_of_the_server(served: Any, other: bytes) -> None:
    keys = [other, f"Bearer {KEY}".encode()]
    for order in (keys, keys[::-1]):
        headers = [(b"Authorization", key) for key in order]
        assert httpx.get(f"{served['url']}/models", headers=headers).status_code == 401


def test_messages_are_clamped_and_told_their_cap_too(client: httpx.Client) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "What is 19 + 23?"}]}
    more = client.post("/messages", json=body | {"max_tokens": 10**6})
    assert told(more) == f"{LIMIT}; limit; asked=1000000"
    assert more.json()["usage"]["output_tokens"] <= LIMIT
    streamed = client.post("/messages", json=body | {"max_tokens": 9, "stream": True})
    assert told(streamed) == "9; asked"
    assert "event: message_stop" in streamed.text


def test_absent_tokens_are_filled(client: httpx.Client) -> None:
    response = chat(client, logit_bias={"300": 100}, temperature=0, ignore_eos=True)
    assert told(response) == f"{DEFAULT}; default"
    assert response.json()["choices"][0]["finish_reason"] == "length"
    assert response.json()["usage"]["completion_tokens"] == DEFAULT


def test_the_cap_holds_on_the_engines_own_route(client: httpx.Client, served: Any) -> None:
    """`/generate` knows nothing of headers; the scheduler lowers what it asks for."""
    params = {"max_new_tokens": LIMIT + 400, "ignore_eos": True, "temperature": 0}
    body = {"text": "a rank", "sampling_params": params}
    answer = client.post(served["url"].removesuffix("/v1") + "/generate", json=body).json()
    assert answer["meta_info"]["completion_tokens"] == LIMIT


def test_one_token_for_ever_ends(client: httpx.Client) -> None:
    answer = chat(client, max_tokens=110, **SAME).json()
    choice = answer["choices"][0]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("stop", "repetition")
    assert answer["usage"]["completion_tokens"] == 64
    assert choice["message"]["content"]


def test_one_token_for_ever_ends_in_a_stream_too(client: httpx.Client) -> None:
    fields = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 110}
    lines = chat(client, **fields, **SAME).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    last = next(chunk["choices"][0] for chunk in reversed(chunks) if chunk["choices"])
    assert (last["finish_reason"], last["matched_stop"]) == ("stop", "repetition")
    assert chunks[-1]["usage"]["completion_tokens"] == 64
    assert lines[-2:] == ["data: [DONE]", ""] or lines[-1] == "data: [DONE]"


def test_a_loop_is_named_in_the_log_of_one_rank(client: httpx.Client, line: Command) -> None:
    chat(client, max_tokens=110, **SAME)
    entries = [json.loads(t) for t in line.run("logs", "-n", "9999", "--json").stdout.splitlines()]
    told = [one for one in entries if "matched=repetition" in one["text"]]
    assert {one["rank"] for one in told} == {0}
    assert "finish_reason=stop" in told[-1]["text"]
    assert "tokens=64 period=1 copies=64" in told[-1]["text"]


def test_the_detokenizer_is_hooked(line: Command, served: Any) -> None:
    """Without it a text that speaks of repetition is cut there when it is ended as a loop."""
    entries = [json.loads(t) for t in line.run("logs", "-n", "9999", "--json").stdout.splitlines()]
    receipts = [one for one in entries if one["text"].startswith('{"tetraspark": "detokenizer"')]
    assert {one["rank"] for one in receipts} == {0}
    assert "DetokenizerManager.trim_matched_stop" in receipts[0]["text"]


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_effort": "turbo"},
        {"reasoning_effort": 7},
        {"chat_template_kwargs": {"reasoning_effort": "turbo"}},
        {"reasoning": {"effort": "turbo"}},
    ],
)
def test_an_unknown_effort_is_refused_and_the_tiers_are_named(
    client: httpx.Client, fields: dict[str, Any]
) -> None:
    response = chat(client, max_tokens=4, **fields)
    error = response.json()["error"]
    assert response.status_code == 400
    assert error["param"] == "reasoning_effort"
    assert set(error) == {"message", "type", "param", "code"}
    assert all(repr(effort) in error["message"] for effort in EFFORTS if effort != "number")


def test_known_efforts_pass(client: httpx.Client) -> None:
    for fields in ({"reasoning_effort": "high"}, {"reasoning": {"effort": "low"}}):
        assert chat(client, max_tokens=4, **fields).status_code == 200


def test_thinking_has_one_meaning(client: httpx.Client) -> None:
    both = chat(client, max_tokens=4, enable_thinking=True, thinking=False)
    assert both.status_code == 400
    assert "enable_thinking is true" in both.json()["error"]["message"]
    agreed = {"enable_thinking": False, "chat_template_kwargs": {"thinking": False}}
    for fields in (agreed, {"enable_thinking": False, "reasoning_effort": "high"}):
        assert chat(client, max_tokens=4, **fields).status_code == 200


def test_answers_are_bounded_on_every_route(client: httpx.Client, served: Any) -> None:
    assert chat(client, max_tokens=2, n=8).status_code == 200
    refused = chat(client, max_tokens=2, n=9)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "n")
    body = {"model": "tiny", "prompt": ["a", "b", "c"], "n": 3, "max_tokens": 2}
    assert "at most 8" in client.post("/completions", json=body).json()["error"]["message"]
    own = {"text": ["a"] * 9, "sampling_params": {"max_new_tokens": 2}}
    answer = client.post(served["url"].removesuffix("/v1") + "/generate", json=own)
    assert (answer.status_code, "at most 8" in answer.text) == (400, True)


def test_a_fault_that_is_not_ours_keeps_the_engines_words(client: httpx.Client) -> None:
    response = client.post("/chat/completions", json={"model": "tiny"})
    assert response.status_code == 400
    assert "messages" in response.text
    assert "error" not in response.json()


def test_every_rank_has_a_receipt_of_its_limits(line: Command, served: Any) -> None:
    for rank in line.json("status")["ranks"]:
        assert "guards" in rank["receipts"]


def test_smoke_probes_the_guards(line: Command, served: Any) -> None:
    checks = {one["id"]: one for one in line.json("smoke")["checks"]}
    assert {"GUARD.TOKENS", "GUARD.EFFORT"} <= set(checks)
    assert all(one["ok"] for one in checks.values()), checks
