"""A server that streams what it is told to: for rules that no honest server would break."""

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

    With `reply`, the pieces are the words of what it returns for a prompt.
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
    reply: Callable[[str], str] | None = None
    finish: str = "length"

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
        self.send_response(404)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        self.server.prompts.append(prompt)
        script = self.server.script
        # Four characters a token, unless the script lies.
        tokens = len(prompt) // 4 if script.prompt_tokens is None else script.prompt_tokens
        with self.server.free:
            self.answer(replace(script, prompt_tokens=tokens), script.texts(prompt))

    def answer(self, script: Script, texts: list[str]) -> None:
        self.send_response(script.status)
        self.end_headers()
        for number, text in enumerate(texts, 1):
            time.sleep(script.delay)
            count = number * script.tokens_a_piece
            usage = self.usage(script, count) if script.continuous and script.usage else None
            self.event({"choices": [{"delta": {"content": text}}], "usage": usage})
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
