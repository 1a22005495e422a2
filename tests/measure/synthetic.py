"""A server that streams what it is told to: for rules that no honest server would break."""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tetraspark.line.api import Api


@dataclass(frozen=True)
class Script:
    """How a request is answered: pieces of so many tokens, `delay` seconds between them.

    With `reply`, the pieces are the words of what it returns for a prompt. A server that `obeys`
    keeps to `max_tokens`. With `burst`, all is held back for so many seconds. `lines` are sent in
    place of everything else; with `drip`, a comment so often, without end. `get` answers a GET.
    """

    pieces: int = 8
    tokens_a_piece: int = 1
    delay: float = 0.02
    cached: int | None = 0
    continuous: bool = True
    usage: bool = True
    slots: int = 64
    status: int = 200
    cut: bool = False
    prompt_tokens: int | None = None
    count: Callable[[str], int] = lambda prompt: len(prompt) // 4
    reply: Callable[[str], str] | None = None
    finish: str = "length"
    obeys: bool = True
    reasons: bool = False
    burst: float = 0
    lines: tuple[str, ...] | None = None
    drip: float = 0
    get: tuple[int, str] = (404, "")

    def texts(self, prompt: str) -> list[str]:
        """Return the pieces of the answer to a prompt."""
        if self.reply is None:
            return ["word " * 4] * self.pieces
        return re.findall(r"\S*\s*", self.reply(prompt))[:-1]


class Server(ThreadingHTTPServer):
    """Answers by its script; at most `slots` requests at once, others wait."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.free = threading.Semaphore(script.slots)
        self.prompts: list[str] = []

    @property
    def api(self) -> Api:
        return Api(f"http://127.0.0.1:{self.server_address[1]}/v1", "scripted")


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        status, text = self.server.script.get
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        self.server.prompts.append(prompt)
        script = self.server.script
        # Four characters a token, unless the script lies.
        tokens = script.count(prompt) if script.prompt_tokens is None else script.prompt_tokens
        texts = script.texts(prompt)
        if script.obeys:
            texts = texts[: max(body["max_tokens"] // script.tokens_a_piece, 1)]
        with self.server.free, contextlib.suppress(ConnectionError):
            self.answer(replace(script, prompt_tokens=tokens), texts)

    def answer(self, script: Script, texts: list[str]) -> None:
        self.send_response(script.status)
        self.end_headers()
        if script.lines is not None:
            self.wfile.write("".join(f"{line}\n\n" for line in script.lines).encode())
            return
        while script.drip:
            self.wfile.write(b": nothing\n")
            self.wfile.flush()
            time.sleep(script.drip)
        time.sleep(script.burst)
        for number, text in enumerate(texts, 1):
            time.sleep(script.delay)
            count = number * script.tokens_a_piece
            usage = self.usage(script, count) if script.continuous and script.usage else None
            name = "reasoning_content" if script.reasons else "content"
            self.event({"choices": [{"delta": {name: text}}], "usage": usage})
        if script.cut:
            return
        self.event({"choices": [{"delta": {}, "finish_reason": script.finish}]})
        if script.usage:
            count = len(texts) * script.tokens_a_piece
            self.event({"choices": [], "usage": self.usage(script, count)})
        self.wfile.write(b"data: [DONE]\n\n")

    def usage(self, script: Script, count: int) -> dict[str, Any]:
        told: dict[str, Any] = {
            "prompt_tokens": script.prompt_tokens,
            "completion_tokens": count,
        }
        if script.cached is not None:
            told["prompt_tokens_details"] = {"cached_tokens": script.cached}
        return told

    def event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    """Serve a script for the length of a `with`."""
    server = Server(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
