import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from tetraspark.errors import RunError, UsageError
from tetraspark.line.api import Api, _pieces
from tetraspark.line.smoke import smoke
from tetraspark.site.key_file import read_key
from tetraspark.site.schema import Canary


class Handler(BaseHTTPRequestHandler):
    replies: ClassVar[dict[str, tuple[int, str]]] = {}
    seen: ClassVar[list[tuple[str, str | None]]] = []
    headers_too: ClassVar[dict[str, str]] = {}

    def reply(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Handler.seen.append((self.path, self.headers.get("Authorization")))
        status, body = Handler.replies[self.path]
        self.send_response(status)
        for name, value in Handler.headers_too.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = reply

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def api() -> Iterator[Api]:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    Handler.replies, Handler.seen, Handler.headers_too = {}, [], {}
    Thread(target=server.serve_forever, daemon=True).start()
    yield Api(f"http://127.0.0.1:{server.server_port}/v1", "tiny", "k3y")
    server.shutdown()
    server.server_close()


def test_the_key_is_sent_and_never_shown(api: Api) -> None:
    Handler.replies["/v1/models"] = (200, json.dumps({"data": [{"id": "tiny"}]}))
    assert api.models(5) == ["tiny"]
    assert Handler.seen == [("/v1/models", "Bearer k3y")]
    assert "k3y" not in repr(api)


def test_server_info_is_asked_under_both_of_its_names(api: Api) -> None:
    Handler.replies["/server_info"] = (404, "")
    Handler.replies["/get_server_info"] = (200, '{"tp_size": 4}')
    assert api.server_info(5) == {"tp_size": 4}
    Handler.replies["/server_info"] = (200, '{"tp_size": 2}')
    assert api.server_info(5) == {"tp_size": 2}


@pytest.mark.parametrize("body", ["[]", "no JSON", "null"])
def test_server_info_of_another_shape_is_told(api: Api, body: str) -> None:
    Handler.replies["/server_info"] = (200, body)
    with pytest.raises(RunError, match="an answer of another shape"):
        api.server_info(5)


def test_an_error_of_the_server_is_told_with_its_text(api: Api) -> None:
    Handler.replies["/v1/chat/completions"] = (503, "not ready")
    with pytest.raises(RunError, match="HTTP 503: not ready; wanted: HTTP 200"):
        api.chat("hi", 4, 5)
    with pytest.raises(RunError, match="HTTP 503: not ready"):
        list(api.stream("hi", 4, 5))


def test_a_silent_server_is_told_with_the_time() -> None:
    api = Api("http://127.0.0.1:9/v1", "tiny")
    with pytest.raises(RunError, match="wanted: an answer within 2 s"):
        api.chat("hi", 4, 2)
    assert api.http_status("/health", 2) is None


@pytest.mark.parametrize("body", ["{}", "[]", "no json", '{"choices": []}'])
def test_an_answer_of_another_shape_is_told(api: Api, body: str) -> None:
    for path in ("/v1/chat/completions", "/v1/models"):
        Handler.replies[path] = (200, body)
    with pytest.raises(RunError, match="another shape"):
        api.chat("hi", 4, 5)
    with pytest.raises(RunError, match="another shape"):
        api.models(5)


def test_smoke_of_a_silent_server_fails_every_check_without_raising() -> None:
    checks = smoke(Api("http://127.0.0.1:9/v1", "tiny", "key"), Canary(prompt="hi", expect="x"), 2)
    assert [check.ok for check in checks] == [False] * 6


def test_pieces_of_a_stream() -> None:
    def chunk(delta: dict[str, object]) -> str:
        return "data: " + json.dumps({"choices": [{"delta": delta}]})

    lines = [chunk({"role": "assistant", "content": ""}), "", chunk({"content": "a"})]
    lines += [": comment", chunk({"content": "b"}), 'data: {"choices": []}', "data: [DONE]"]
    assert list(_pieces(iter(lines))) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("k", 0o644, "mode 644"),
        ("", 0o600, "no key that a header"),
        ("a b", 0o600, "no key that a header"),
        ("schlüssel", 0o600, "no key that a header"),
        (None, 0, "no such file"),
        ("k", 0o620, "chmod 600"),
        ("k", 0o604, "mode 604"),
    ],
)
def test_a_key_file_that_cannot_be_trusted(
    tmp_path: Path, text: str | None, mode: int, said: str
) -> None:
    file = tmp_path / "key"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(UsageError, match=said):
        read_key(tmp_path / "key")


def test_a_key_file_of_its_owner(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("abc\n")
    (tmp_path / "key").chmod(0o600)
    assert read_key(tmp_path / "key") == "abc"


@pytest.mark.parametrize("names", ['[{"id": 7}]', '[{"id": null}]', "[7]", "7", '{"a": 1}'])
def test_names_of_models_are_texts(api: Api, names: str) -> None:
    Handler.replies["/v1/models"] = (200, f'{{"data": {names}}}')
    with pytest.raises(RunError, match="an answer of another shape"):
        api.models(5)


@pytest.mark.parametrize("content", ["[1]", "{}x", "[" * 5000])
def test_content_that_is_no_text_is_told(api: Api, content: str) -> None:
    choice = f'{{"message": {{"content": {content}}}, "finish_reason": "stop"}}'
    usage = '{"prompt_tokens": 1, "completion_tokens": 1}'
    body = f'{{"choices": [{choice}], "usage": {usage}}}'
    Handler.replies["/v1/chat/completions"] = (200, body)
    with pytest.raises(RunError, match="an answer of another shape"):
        api.chat("?", 1, 5)
    Handler.replies["/v1/chat/completions"] = (200, 'data: {"choices": [{"delta": 7}]}\n')
    with pytest.raises(RunError, match="an answer of another shape"):
        list(api.stream("?", 1, 5))


@pytest.mark.parametrize("url", ["http://[::1", "http://h/\x00", "http://h:99999/v1"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="a URL such as"):
        Api(url, "tiny")


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 0.0, 1e300])
def test_a_timeout_that_no_clock_holds_is_refused(api: Api, seconds: float) -> None:
    with pytest.raises(UsageError, match="timeout"):
        api.models(seconds)


def test_a_redirection_names_where_to(api: Api) -> None:
    Handler.headers_too = {"Location": "https://elsewhere.example/v1/models"}
    Handler.replies["/v1/models"] = (307, "")
    with pytest.raises(RunError, match="HTTP 307: it is to be asked at https://elsewhere"):
        api.models(5)
