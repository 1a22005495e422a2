"""The status server: what it answers, and that health is that of the line."""

import json
import re
import time
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.serving import eventually
from tests.watch import status_lines as lines
from tests.watch.status_client import get, raw, status
from tetraspark.watch.board import Board
from tetraspark.watch.http import STALE_SECONDS, Server


def test_the_four_addresses_answer(server: Server, board: Board) -> None:
    board.post(lines.degraded(time.time()))
    page = get(server, "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "lane 1 from spark2 to spark3 is down" in page.text
    metrics = get(server, "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "tetraspark_lane_bytes" in {
        one.name for one in text_string_to_metric_families(metrics.text)
    }
    state = get(server, "/state.json").json()
    assert state["observation"]["ranks"][1]["lanes"][3]["state"] == "down"
    assert state["healthy"] is True and "page" not in state
    assert state["age_seconds"] < STALE_SECONDS
    assert get(server, "/healthz").status_code == 200


def test_prometheus_may_ask_for_open_metrics(unseen: Server) -> None:
    answer = get(unseen, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("name", "code"),
    [("ready", 200), ("degraded", 200), ("wedged", 503), ("down", 503), ("starting", 503)],
)
def test_health_is_that_of_the_line(server: Server, board: Board, name: str, code: int) -> None:
    seen = getattr(lines, name)(time.time())
    board.post(seen)
    answer = get(server, "/healthz")
    assert answer.status_code == code
    assert answer.text.startswith(name) and seen.reason in answer.text
    assert seen.rank is None or f"rank {seen.rank}" in answer.text


def test_an_unseen_line_is_not_healthy(unseen: Server) -> None:
    answer = get(unseen, "/healthz")
    assert (answer.status_code, answer.text) == (503, "nobody has looked at the line yet\n")
    assert get(unseen, "/state.json").json()["observation"] is None
    assert "Not seen yet" in get(unseen, "/").text
    assert "tetraspark_observed 0" in get(unseen, "/metrics").text


def test_an_old_look_is_not_health(server: Server, board: Board) -> None:
    board.post(lines.ready(time.time() - STALE_SECONDS - 5))
    answer = get(server, "/healthz")
    assert answer.status_code == 503 and "has stopped, or hangs" in answer.text
    assert get(server, "/state.json").json()["stale"] is True
    page = get(server, "/").text
    assert "<strong>Stale.</strong>" in page and "Last known:" in page


def test_rates_are_between_two_looks_even_if_nobody_asked(server: Server, board: Board) -> None:
    now = time.time()
    board.post(lines.ready(now - 10, sent=10**9))
    assert eventually(lambda: server._rates._last is not None, 30)
    board.post(lines.ready(now, sent=2 * 10**9))
    rates = get(server, "/state.json").json()["lane_rates"]
    assert len(rates) == 4 * 3 * 2
    first = rates[0]
    assert (first["rank"], first["peer"], first["lane"]) == (0, 1, 0)
    assert first["bytes_per_second"] == pytest.approx(6e8)


def test_numbers_that_json_has_not_are_null(server: Server, board: Board) -> None:
    engine = replace(lines.ENGINE, kv_used=float("nan"), acceptance=float("inf"))
    board.post(replace(lines.ready(time.time()), engine=engine))
    told = get(server, "/state.json").json()["observation"]["engine"]
    assert (told["kv_used"], told["acceptance"], told["swa_used"]) == (None, None, 0.91)
    assert get(server, "/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/state.json", "/healthz", "/nothing"])
def test_every_answer_is_closed_to_other_pages(unseen: Server, path: str) -> None:
    headers = get(unseen, path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and not re.search(r"https?:|\*", policy)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert headers["server"] == "tetraspark"


def test_head_is_get_without_the_body(server: Server, board: Board) -> None:
    board.post(lines.ready(time.time()))
    answer = raw(server, b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(answer) == 200 and answer.endswith(b"\r\n\r\n")
    assert f"Content-Length: {len(get(server, '/healthz').content)}\r\n".encode() in answer
    assert status(raw(server, b"HEAD /no HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 404


def test_many_ask_while_the_board_changes(server: Server, board: Board) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(step: int) -> int:
        board.post(lines.ready(time.time(), sent=10**9 * step))
        answer = get(server, "/state.json?page")
        assert json.loads(answer.text)["page"]["parts"]["state"]
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(24))) == {200}
