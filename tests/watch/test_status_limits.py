"""The status server: what it refuses, and that it survives its clients."""

import http.client
import re
import socket
import struct
import time
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from tests.serving import eventually
from tests.watch import status_lines as lines
from tests.watch.status_client import LOOPBACK, get, raw, status
from tetraspark.errors import RunError, UsageError
from tetraspark.watch import http_handler
from tetraspark.watch.board import Board
from tetraspark.watch.http import CONNECTIONS, Server, serve_page


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


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (b"\r\n", b"first line"),
        (b"\r\n" + REQUEST, b"first line"),
        (b"GET /\r\n", b"first line"),
        (b"GET / HTTP/0.9\r\nHost: localhost\r\n", b"first line"),
        (b"GET http://[/ HTTP/1.1\r\nHost: localhost\r\n", b"'http://[/'"),
        (b"GET / HTTP/1.1\r\nbad\r\nHost: localhost\r\n", b"'bad'"),
        (b"GET / HTTP/1.1\r\n: x\r\nHost: localhost\r\n", b"': x'"),
        (b"GET / HTTP/1.1\r\nHost : localhost\r\n", b"'Host : localhost'"),
        (REQUEST + b" folded: x\r\n", b"' folded: x'"),
        (REQUEST + b"a: b\rc: d\r\n", b"a: b"),
        (REQUEST + b"a\0: b\r\n", b"a"),
        (REQUEST + b"\xff\xfe\r\n", b"'\\xff\\xfe'"),
        (REQUEST + b"Host: localhost\r\n", b"one Host"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_in_a_sentence(
    unseen: Server, caplog: pytest.LogCaptureFixture, request_: bytes, words: bytes
) -> None:
    answer = raw(unseen, request_ + b"\r\n")
    assert status(answer) == 400
    assert words in answer.partition(b"\r\n\r\n")[2]
    assert b"text/plain" in answer and not caplog.records


def test_a_body_behind_a_body_of_none_is_refused(unseen: Server) -> None:
    lengths = b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello"
    assert status(raw(unseen, REQUEST + lengths)) == 413


@pytest.mark.parametrize("version", ["x", "1e999", "", "1" * 5000, "=", "v1.0.0", "\xff"])
@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain", "*/*"])
def test_an_odd_accept_gets_the_plain_metrics(
    unseen: Server, caplog: pytest.LogCaptureFixture, kind: str, version: str
) -> None:
    accept = f"Accept: {kind}; version={version}".encode("latin-1")
    answer = raw(unseen, REQUEST.replace(b" / ", b" /metrics ") + accept + b"\r\n\r\n")
    assert status(answer) == 200 and not caplog.records
    assert not version or b"text/plain; version=0.0.4" in answer
    assert b"tetraspark_observed" in answer


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
