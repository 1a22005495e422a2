"""The status server: what it answers, what it refuses, and that it survives its clients."""

import http.client
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.serving import eventually
from tests.watch import status_lines as lines
from tetraspark.errors import RunError, UsageError
from tetraspark.watch import http_handler
from tetraspark.watch.board import Board
from tetraspark.watch.http import CONNECTIONS, STALE_SECONDS, Server, serve_page

LOOPBACK = "127.0.0.1"


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def server(board: Board) -> Iterator[Server]:
    made = serve_page(board, LOOPBACK, 0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def unseen() -> Iterator[Server]:
    """A server whose line nobody looks at."""
    made = serve_page(Board(), LOOPBACK, 0)
    yield made
    made.close()


@cache
def client() -> httpx.Client:
    """Return one client for all tests: each would load the certificates that none needs."""
    return httpx.Client(trust_env=False, timeout=60)


def get(server: Server, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    url = f"http://{LOOPBACK}:{server.port}{path}"
    return client().request(method, url, headers=headers)


def raw(server: Server, request: bytes) -> bytes:
    """Send bytes and return all that comes back."""
    with socket.create_connection((LOOPBACK, server.port), timeout=30) as client:
        client.sendall(request)
        found = b""
        while more := client.recv(65536):
            found += more
    return found


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.0 "), answer[:80]
    return int(answer.split()[1])


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


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/page.css",
        "/state.json/",
        "/%00",
        "/metrics%2f",
    ],
)
def test_nothing_else_is_served(unseen: Server, path: str) -> None:
    answer = raw(unseen, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert status(answer) == 404 and b"root:" not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "X"])
def test_it_only_reads(unseen: Server, method: str) -> None:
    answer = get(unseen, "/", method)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_get_without_the_body(server: Server, board: Board) -> None:
    board.post(lines.ready(time.time()))
    answer = raw(server, b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(answer) == 200 and answer.endswith(b"\r\n\r\n")
    assert f"Content-Length: {len(get(server, '/healthz').content)}\r\n".encode() in answer
    assert status(raw(server, b"HEAD /no HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 404


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 900_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET / HTTP/9.9.9\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
    ],
    ids=["header", "path", "body", "chunked", "tls", "version", "headers"],
)
def test_what_is_no_small_get_is_refused(unseen: Server, request_: bytes, code: int) -> None:
    assert status(raw(unseen, request_)) == code
    assert get(unseen, "/healthz").status_code == 503


def test_a_slow_client_is_ended_and_holds_nobody_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_handler, "SECONDS", 1.5)
    with socket.create_connection((LOOPBACK, server.port), timeout=30) as slow:
        slow.sendall(b"GET / HT")
        assert get(server, "/healthz").status_code == 503
        slow.settimeout(0.1)
        found = b""
        # A byte now and then must not buy more time.
        for _ in range(600):
            slow.sendall(b"a")
            with suppress(TimeoutError):
                found = slow.recv(65536)
                break
    assert status(found) == 408


def test_clients_that_leave_leave_it_working(server: Server, board: Board) -> None:
    board.post(lines.degraded(time.time()))
    reset = struct.pack("ii", 1, 0)
    for request in (b"", b"GET ", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        for _ in range(5):
            client = socket.create_connection((LOOPBACK, server.port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            client.sendall(request)
            client.close()
    assert get(server, "/").status_code == 200


def test_more_clients_than_it_serves_are_turned_away_and_come_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_handler, "SECONDS", 600.0)
    with ExitStack() as held:
        for _ in range(CONNECTIONS):
            held.enter_context(socket.create_connection((LOOPBACK, server.port)))
        assert eventually(lambda: server._free._value == 0, 30)
        with pytest.raises(httpx.HTTPError):
            get(server, "/healthz")
    assert eventually(lambda: server._free._value == CONNECTIONS, 30)
    assert get(server, "/healthz").status_code == 503


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1", 503),
        ("localhost:9400", 503),
        ("[::1]:9400", 503),
        ("status.attacker.example", 421),
        ("10.0.0.5:9400", 421),
        ("", 421),
        ("localhost.attacker.example", 421),
    ],
)
def test_a_name_that_was_pointed_here_is_refused(unseen: Server, host: str, code: int) -> None:
    assert get(unseen, "/healthz", host=host).status_code == code


def test_a_fault_of_ours_is_logged_and_not_shown(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Any) -> Any:
        raise ValueError("sk-secret")

    monkeypatch.setitem(http_handler.CONTENTS, "/", broken)
    answer = raw(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(answer) == 500 and b"sk-secret" not in answer
    assert "a request of the status page failed" in caplog.text
    assert get(server, "/healthz").status_code == 503


def test_other_hosts_only_when_told(board: Board) -> None:
    for host in ("0.0.0.0", "::", "10.0.0.5", "spark1"):
        with pytest.raises(UsageError, match="lets others in, and the page has no password"):
            serve_page(board, host, 0)
    open_ = serve_page(board, "0.0.0.0", 0, open_to_others=True)
    try:
        assert get(open_, "/state.json", host="spark1:9400").status_code == 200
    finally:
        open_.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python has no IPv6")
def test_the_other_loopback(board: Board) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no ::1")
    server = serve_page(board, "::1", 0)
    try:
        connection = http.client.HTTPConnection("::1", server.port)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 503
        connection.close()
    finally:
        server.close()


def test_a_taken_port_names_its_owner_and_the_next_command(server: Server, board: Board) -> None:
    with pytest.raises(RunError) as caught:
        serve_page(board, LOOPBACK, server.port)
    (problem,) = caught.value.problems
    assert problem.where == f"status page at 127.0.0.1:{server.port}"
    assert re.search(r"in use by pid \d+ \(", problem.seen)
    assert f"ss -ltnp 'sport = :{server.port}'" in problem.fix


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_refused(board: Board, port: int) -> None:
    with pytest.raises(UsageError, match="0 to 65535"):
        serve_page(board, LOOPBACK, port)


def test_an_address_of_another_machine_is_named(board: Board) -> None:
    with pytest.raises(RunError, match="no address of this machine"):
        serve_page(board, "192.0.2.7", 0, open_to_others=True)
    with pytest.raises(RunError, match=r"no-such\.invalid"):
        serve_page(board, "no-such.invalid", 0, open_to_others=True)


def test_a_closed_server_has_let_go_of_its_port(board: Board) -> None:
    first = serve_page(board, LOOPBACK, 0)
    port = first.port
    assert get(first, "/healthz").status_code == 503
    first.close()
    first.close()
    again = serve_page(board, LOOPBACK, port)
    assert get(again, "/healthz").status_code == 503
    again.close()


def test_many_ask_while_the_board_changes(server: Server, board: Board) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(step: int) -> int:
        board.post(lines.ready(time.time(), sent=10**9 * step))
        answer = get(server, "/state.json?page")
        assert json.loads(answer.text)["page"]["parts"]["state"]
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(24))) == {200}
