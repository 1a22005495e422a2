"""One line, served by the real engine on four ranks, from start to a killed rank and stop.

The last to use it as it is: what comes after finds no line (test_serving_again.py).
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.line.conftest import KEY, LIMIT, TWO_SHOT_LIMIT
from tests.line.faults import error_of_a_request, roots, survivors_words
from tests.serving import Command, eventually
from tetraspark.fleet.process import Process, labelled
from tetraspark.fleet.shared_memory import mapped as mapped_by
from tetraspark.line.api import Api

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def mapped(line: Command, served: Any) -> set[Path]:
    """Shared memory of the line's processes, as it was while all were alive."""
    return mapped_by([process.pid for process in processes(line)])


def processes(line: Command) -> list[Process]:
    return labelled(Path(line.env["TETRASPARK_STATE"]))


def test_serve_ends_with_an_answer_and_leaves_the_line_running(line: Command, served: Any) -> None:
    assert (served["answer"]["text"], served["answer"]["finish"]) == ("42", "stop")
    assert list(served["seconds"]) == ["import", "load", "warmup", "canary"]
    assert {process.rank for process in processes(line)} == {0, 1, 2, 3}


def test_curl_gets_a_chat_answer(served: Any) -> None:
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "What is 19 + 23?"}],
        "max_tokens": 8,
    }
    words = ["-H", f"Authorization: Bearer {KEY}", "-H", "Content-Type: application/json"]
    result = subprocess.run(
        ["curl", "-sS", f"{served['url']}/chat/completions", *words, "-d", json.dumps(body)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(result.stdout)
    assert answer["choices"][0]["message"]["content"] == "42"
    assert answer["usage"]["completion_tokens"] == 3  # Two digits and the end.


def test_the_openai_client_works_streaming_too(served: Any) -> None:
    with openai.OpenAI(base_url=served["url"], api_key=KEY) as client:
        messages: Any = [{"role": "user", "content": "Count the ranks."}]
        whole = client.chat.completions.create(
            model="tiny", messages=messages, max_tokens=48, temperature=0
        )
        text = whole.choices[0].message.content
        stream = client.chat.completions.create(
            model="tiny", messages=messages, max_tokens=48, temperature=0, stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert text is not None
    assert "four ranks" in text
    assert "".join(pieces) == text
    assert sum(1 for piece in pieces if piece) > 1


def test_without_the_key_the_api_refuses_and_health_answers(served: Any) -> None:
    with (
        openai.OpenAI(base_url=served["url"], api_key="wrong") as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()
    root = served["url"].removesuffix("/v1")
    code = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"{root}/health"]
    assert subprocess.run(code, capture_output=True, text=True, check=True).stdout == "200"


def test_the_key_is_in_no_argv_environment_log_plan_or_state(line: Command, served: Any) -> None:
    texts = {
        str(file): file.read_bytes()
        for file in Path(line.env["TETRASPARK_STATE"]).rglob("*")
        if file.is_file()
    }
    for process in processes(line):
        for name in ("cmdline", "environ"):
            texts[f"{process.pid}/{name}"] = Path(f"/proc/{process.pid}/{name}").read_bytes()
    assert len(texts) > 20
    assert [name for name, data in texts.items() if KEY.encode() in data] == []
    with openai.OpenAI(base_url=served["url"], api_key=KEY) as client:
        info = client.get("/../server_info", cast_to=object)
    assert KEY not in str(info)


def test_the_page_and_the_metrics_are_served_and_hold_no_key(served: Any) -> None:
    def shown() -> str:
        return httpx.get(served["page"], trust_env=False).text

    assert eventually(lambda: "every rank is up, the canary answered" in shown(), 30)
    texts = {
        name: httpx.get(served["page"] + name, trust_env=False).text
        for name in ("", "metrics", "state.json", "healthz")
    }
    assert 'tetraspark_line_state{state="ready"} 1.0' in texts["metrics"]
    assert [name for name, text in texts.items() if KEY in text] == []


def test_every_rank_has_proven_itself(line: Command, served: Any) -> None:
    status = line.json("status")
    assert (status["verdict"], status["health"], status["run"]) == ("ready", 200, served["run"])
    assert status["canary_seconds"] > 0
    for rank in status["ranks"]:
        assert rank["state"] == "running"
        assert {"engine", "tp_all_reduce"} <= set(rank["receipts"])


def test_the_engine_runs_with_what_was_planned(line: Command, served: Any) -> None:
    effective = {one["key"]: one for one in line.json("status")["effective"]}
    assert [one for one in effective.values() if not one["same"]] == []
    wanted = {"tp_size": 4, "context_length": 4096, "max_total_num_tokens": 8192}
    assert {key: effective[key]["value"] for key in wanted} == wanted
    assert effective["context_length"]["where"].startswith(f"{line.site}:")


def test_receipts_say_what_runs(line: Command, served: Any) -> None:
    entries = [
        json.loads(text) for text in line.run("logs", "-n", "9999", "--json").stdout.splitlines()
    ]
    receipts = [json.loads(one["text"]) for one in entries if one["text"].startswith("{")]
    engines = {one["rank"]: one for one in receipts if one["tetraspark"] == "engine"}
    routes = {one["rank"]: one for one in receipts if one["tetraspark"] == "tp_all_reduce"}
    assert set(engines) == set(routes) == {0, 1, 2, 3}
    assert {one["engine"] for one in engines.values()} == {"0.5.23"}
    for part in ("all_reduce", "accept_and_finalize"):
        assert all(any(part in hook for hook in one["hooks"]) for one in engines.values())
    for route in routes.values():
        assert (route["world"], route["route"], route["dtype"]) == (4, "shm", "bfloat16")
        assert route["bytes"] == 2 * route["shape"][0] * route["shape"][1] <= route["limit"]
        assert (route["algorithm"], route["limit"]) == ("one-shot", LIMIT)
        assert (route["two_shot_from"], route["two_shot_limit"]) == (LIMIT + 16, TWO_SHOT_LIMIT)
    assert {one["transport"] for one in engines.values()} == {"shm"}


@pytest.mark.parametrize(
    ("words", "way"), [(25, "all_reduce two-shot"), (100, "all_reduce left to the engine")]
)
def test_prefills_go_two_shot_up_to_the_sites_limit(
    line: Command, served: Any, words: int, way: str
) -> None:
    """Prompts of 104 and 405 tokens make all-reduces of so many rows of 256 bf16 values."""
    before = routed(line)
    with openai.OpenAI(base_url=served["url"], api_key=KEY) as client:
        # Four tokens even if it would end sooner.
        client.completions.create(
            model="tiny",
            prompt=f"{words}. " + "a rank. " * words,
            max_tokens=4,
            extra_body={"ignore_eos": True},
        )
    time.sleep(1.5)
    after = routed(line)
    for old, new in zip(before, after, strict=True):
        grown = {
            route: new[route]["operations"] - old.get(route, NONE)["operations"] for route in new
        }
        (other,) = {"all_reduce two-shot", "all_reduce left to the engine"} - {way}
        assert (grown[way], grown.get(other, 0)) == (9, 0)
        assert grown["all_reduce one-shot"] >= 3 * 9
        assert grown["all_gather"] > 0
        moved = new[way]["bytes"] - old.get(way, NONE)["bytes"]
        assert (moved > 9 * TWO_SHOT_LIMIT) == (way != "all_reduce two-shot")
    assert len({json.dumps(new) for new in after}) == 1, "ranks routed differently"


NONE = {"operations": 0, "bytes": 0}


def routed(line: Command) -> list[Any]:
    return [rank["collectives"]["routed"] for rank in line.json("status")["ranks"]]


def test_smoke_passes(line: Command, served: Any) -> None:
    result = line.json("smoke")
    assert result["ok"], result
    ids = [check["id"] for check in result["checks"]]
    assert ids == [
        "API.MODELS",
        "CHAT.ANSWER",
        "CHAT.REPEATS",
        "CHAT.STREAM",
        "CHAT.EXPECTED",
        "API.KEY",
        "GUARD.TOKENS",
        "GUARD.EFFORT",
    ]


def test_a_second_serve_is_refused_and_nothing_is_touched(line: Command, served: Any) -> None:
    before = {process.pid for process in processes(line)}
    result = line.run("serve")
    assert result.returncode == 1
    assert f"run {served['run']} has" in result.stderr
    assert "--replace" in result.stderr
    tuned = line.run("tune")
    assert tuned.returncode == 1
    assert f"run {served['run']} has" in tuned.stderr
    assert {process.pid for process in processes(line)} == before


def test_logs_of_one_rank_and_followed(line: Command, served: Any) -> None:
    assert "KV Cache is allocated" in line.run("logs", "2", "-n", "9999").stdout
    assert line.run("logs", "7").returncode == 2
    argv = line.argv("logs", "0", "-f", "-n", "0")
    with subprocess.Popen(argv, env=line.env, stdout=subprocess.PIPE, text=True) as follower:
        time.sleep(1.5)
        line.run("smoke")
        assert follower.stdout is not None
        seen = follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        rest = follower.stdout.read()
    assert "POST /v1/chat/completions" in seen + rest or "Prefill batch" in seen + rest
    assert "Traceback" not in rest


def test_what_stop_would_do(line: Command, served: Any) -> None:
    pids = line.json("stop", "--dry-run")["would_end"]
    assert set(pids) == {str(process.pid) for process in processes(line)}


def test_the_engine_maps_shared_memory_that_a_crash_would_leave(mapped: set[Path]) -> None:
    assert len(mapped) >= 2


def test_a_frozen_rank_is_named_while_health_answers(line: Command, served: Any) -> None:
    victim = next(one for one in processes(line) if one.name == "sglang::scheduler_TP1")
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        status = line.json("status")
        assert time.monotonic() - started < 5
    finally:
        os.kill(victim.pid, signal.SIGCONT)
    assert (status["verdict"], status["api"], status["health"]) == ("degraded", 200, None)
    assert status["reason"].startswith("rank 1 (node1): a process of it is stopped")
    assert eventually(lambda: line.json("status")["verdict"] == "ready", 30)


def test_a_rank_killed_in_a_request_ends_it_and_is_named_within_five_seconds(
    line: Command, served: Any
) -> None:
    victim = next(one for one in processes(line) if one.name == "sglang::scheduler_TP2")
    seen: list[tuple[float, Any]] = []

    def kill() -> None:
        os.kill(victim.pid, signal.SIGKILL)
        started = time.monotonic()
        result = line.run("status", "--json")
        assert result.returncode == 1
        seen.append((time.monotonic() - started, json.loads(result.stdout)))

    seconds, _ = error_of_a_request(Api(served["url"], "tiny", KEY), kill)
    (took, status) = seen[0]
    assert took < 5
    assert took + seconds < 15, "the client waited for the dead"
    assert status["reason"].startswith("rank 2 (node2)")
    assert status["verdict"] in ("degraded", "down")


def test_its_survivors_all_name_it(line: Command, served: Any) -> None:
    assert eventually(lambda: set(survivors_words(line, dead=2)) == {0, 1, 3}, 30)
    (root,) = roots(survivors_words(line, dead=2))
    assert root.startswith("dead: rank 2, seen by rank ")
    assert "sequence" in root
    assert "bytes" in root


def test_the_killed_rank_is_still_named_when_all_have_died(line: Command, served: Any) -> None:
    def all_down() -> bool:
        return all(rank["state"] == "exited" for rank in line.json("status")["ranks"])

    assert eventually(all_down, 60)
    status = line.json("status")
    assert (status["verdict"], status["api"], status["health"]) == ("down", None, None)
    assert status["reason"].startswith("rank 2 (node2)")
    assert eventually(lambda: line.json("status")["watch"]["state"] == "down", 60)
    assert line.json("status")["watch"]["rank"] == 2


def test_stop_leaves_nothing(line: Command, served: Any, mapped: set[Path]) -> None:
    line.run("stop")
    assert processes(line) == []
    assert [file for file in mapped if file.exists()] == []
    assert line.json("stop")["removed"] == []
    assert line.json("status")["verdict"] == "down"
