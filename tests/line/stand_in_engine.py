"""A stand-in for the engine of one rank: says what its log would, answers what its API would.

Takes the engine's own flags, and runs where the engine would: beside a launcher, or in a container
in place of `sglang.launch_server` (standard library only). What it does otherwise than well is in
`behaviour.json` of the model's folder, which may differ from node to node:

`fail` is a line to print and end with, `exit` the code for that; `hang` a stage to stay in; `pause`
seconds between stages; `answer` the text of completions; `told` what /server_info says instead;
`stubborn` ignores SIGTERM.

Read anew at each request: `answer`, `silent` (a completion that does not come) and `metrics` (the
text of /metrics).
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STAGES = ("Init parallel ends", "Load weight begin", "Load weight end", "KV Cache is allocated")


def flags_of(words: list[str]) -> dict[str, Any]:
    """Return the engine's flags as its /server_info would repeat them."""
    found: dict[str, Any] = {}
    for word, value in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word[2:].replace("-", "_")] = True if value.startswith("--") else number(value)
    return found


def number(text: str) -> Any:
    """Return what a word means."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class Rank:
    """One rank, as its flags and the behaviour of its node want it."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self.flags = flags
        self.behaviour = self.now()
        self.rank, self.world = flags.get("node_rank", 0), flags.get("nnodes", 1)
        key_file = os.environ.get("TETRASPARK_API_KEY_FILE")
        self.key = Path(key_file).read_text().strip() if key_file else None

    def now(self) -> dict[str, Any]:
        """Return what its node wants of it at this moment."""
        file = Path(str(self.flags.get("model_path", ".")), "behaviour.json")
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found

    def say(self, text: str) -> None:
        """Print a line with the engine's time stamp."""
        print(f"[{datetime.now():%Y-%m-%d %H:%M:%S} TP{self.rank}] {text}", flush=True)

    def start(self) -> None:
        """Go through the stages of a start."""
        self.say(f"server_args={self.flags}")
        for stage in STAGES:
            time.sleep(self.behaviour.get("pause", 0))
            self.say(stage)
            if self.behaviour.get("hang") == stage:
                signal.pause()
        if "fail" in self.behaviour:
            print(self.behaviour["fail"], file=sys.stderr, flush=True)
            sys.exit(self.behaviour.get("exit", 1))
        self.schedule()
        self.say("Dummy health check server started" if self.rank else "Uvicorn running on")

    def schedule(self) -> None:
        """Start the process of the scheduler, which prints the receipts."""
        child = os.fork()
        if child == 0:
            transport = os.environ.get("TETRASPARK_TRANSPORT", "off")
            way = "engine" if transport == "off" else transport
            route = {"route": way, "dtype": "bfloat16", "shape": [1, 8], "bytes": 16}
            self.receipt("engine", engine="0.5.23", transport=transport)
            self.receipt("tp_all_reduce", **route)
            limits = {k: v for k, v in os.environ.items() if k.startswith("TETRASPARK_GUARD_")}
            if limits:
                self.receipt("guards", settings=limits)
            self.progress()
            while True:
                signal.pause()
        threading.Thread(target=os.waitpid, args=(child, 0), daemon=True).start()

    def receipt(self, kind: str, **fields: Any) -> None:
        """Print a receipt, as the plugin does."""
        common = {"tetraspark": kind, "pid": os.getpid(), "rank": self.rank, "world": self.world}
        print(json.dumps({**common, **fields}), flush=True)

    def progress(self) -> None:
        """Write what a communicator would."""
        folder = os.environ.get("TETRASPARK_RUN_DIR")
        if folder:
            transport = os.environ.get("TETRASPARK_TRANSPORT", "off")
            state = {"transport": transport, "verdict": "fine", "operations": 7}
            Path(folder, f"rank{self.rank}.collectives.json").write_text(json.dumps(state))

    def serve(self) -> None:
        """Answer on rank 0, wait elsewhere."""
        if self.rank:
            while True:
                signal.pause()
        address = (self.flags.get("host", "127.0.0.1"), self.flags["port"])
        ThreadingHTTPServer(address, handler(self)).serve_forever()

    def completion(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a chat completion, or one piece of a stream."""
        while self.now().get("silent"):
            time.sleep(0.1)
        text = self.now().get("answer", "42")
        kind = "delta" if request.get("stream") else "message"
        return {
            "choices": [{kind: {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }


def handler(rank: Rank) -> type[BaseHTTPRequestHandler]:
    """Return a handler that answers for a rank."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/health"):
                self.answer("")
            elif self.refused():
                self.answer("no", 401)
            elif self.path == "/v1/models":
                self.answer(json.dumps({"data": [{"id": rank.flags.get("served_model_name")}]}))
            elif self.path == "/metrics" and "metrics" in rank.now():
                self.answer(rank.now()["metrics"])
            else:
                self.answer(json.dumps(rank.behaviour.get("told", rank.flags)))

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.refused():
                self.answer("no", 401)
                return
            body = json.dumps(rank.completion(request))
            self.answer(f"data: {body}\n\ndata: [DONE]\n\n" if request.get("stream") else body)

        def refused(self) -> bool:
            return rank.key is not None and self.headers["Authorization"] != f"Bearer {rank.key}"

        def answer(self, body: str, status: int = 200) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            rank.say(f'"{self.command} {self.path}"')

    return Handler


def stacks_on_signal(rank: int) -> None:
    """Write stacks when asked, as the plugin lets every process of the engine do."""
    folder = os.environ.get("TETRASPARK_RUN_DIR")
    if folder:
        path = Path(folder, f"rank{rank}.stacks")
        file = path.open("ab")  # Open for as long as it lives.
        faulthandler.register(signal.SIGUSR1, file)


def main(words: list[str]) -> None:
    """Start and serve until ended."""
    flags = flags_of(words)
    rank = Rank(flags)
    stacks_on_signal(rank.rank)

    def end(number: int, frame: object) -> None:
        rank.say("bye")
        os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if rank.behaviour.get("stubborn") else end)
    rank.start()
    rank.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
