"""What a soak tells of counters that move, of requests that fail, and of a server that is gone."""

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.serving import COMMAND
from tetraspark.line.api import Api
from tetraspark.measure.corpus import library
from tetraspark.measure.counters import errors_of, of_ranks
from tetraspark.measure.sized import Density
from tetraspark.measure.soak import Counters, SoakPlan, SoakReport, Wave, soak

PLAN = SoakPlan(minutes=0.005, streams=2, max_tokens=8, prefill_tokens=16, seed=0, timeout=5.0)
USAGE = {"prompt_tokens": 9, "completion_tokens": 1}
PEERS = ({"rank": 1, "late": {"count": 3}},)


def wave(number: int, counters: Counters, failed: int = 0, tokens: int = 8) -> Wave:
    errors = tuple(f"wave {number}: HTTP 500" for _ in range(failed))
    return Wave(number, 0.0, 1.0, 4, tokens, tokens, 16, 0.1, errors, True, counters)


def report(before: Counters, *waves: Wave) -> SoakReport:
    return SoakReport(waves, before, ("rank0.err",), False)


@contextlib.contextmanager
def answering(content: str, usage: Any, wait: threading.Event | None = None) -> Iterator[Api]:
    """Serve streams of one piece and a usage; with an event, only after it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if wait is not None:
                wait.wait(30)
            self.send_response(200)
            self.end_headers()
            choice = {"delta": {"content": content}, "finish_reason": "stop"}
            event = {"choices": [choice], "usage": usage}
            with contextlib.suppress(ConnectionError):  # whoever asked may have been interrupted
                self.wfile.write(f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode())

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Api(f"http://127.0.0.1:{server.server_address[1]}/v1", "told")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def waves_of(api: Api, minutes: float = PLAN.minutes) -> list[Wave]:
    plan = SoakPlan(**{**vars(PLAN), "minutes": minutes})
    return list(soak(api, plan, library(), Density(4.0, 0), dict))


def test_what_moved_in_the_first_wave_counts() -> None:
    found = report({"rank0.err": 1}, wave(0, {"rank0.err": 3}))
    assert found.growth == {"rank0.err": 2}
    assert found.faults == ("rank0.err grew by 2",)
    assert report({"rank0.err": 3}, wave(0, {"rank0.err": 3})).faults == ()


def test_a_counter_that_appears_began_at_nothing() -> None:
    assert report({}, wave(0, {"rank0.err": 2})).faults == ("rank0.err grew by 2",)


def test_a_counter_that_vanished_or_fell_is_told() -> None:
    assert report({"rank0.err": 4}, wave(0, {})).faults == ("rank0.err vanished at 4",)
    fell = report({"rank0.err": 4}, wave(0, {"rank0.err": 1}), wave(1, {"rank0.err": 4}))
    assert fell.faults == ("rank0.err fell from 4 to 1",)


def test_late_peers_are_errors_where_that_is_asked_for() -> None:
    counters = of_ranks([{"root": None, "peers": PEERS}])
    assert counters == {"rank0.failed": 0.0, "rank0.peer1.late": 3.0}
    assert errors_of(counters) == ("rank0.failed", "rank0.peer1.late")
    assert errors_of(counters, late=False) == ("rank0.failed",)


def test_the_rate_is_that_of_waves_with_tokens() -> None:
    found = report({}, wave(0, {}), wave(1, {}, 4, tokens=0), wave(2, {}, 4, tokens=0))
    told = found.as_dict()
    assert (told["tokens_per_second"], told["slowest"]) == (8, 8)
    assert not found.given_up
    assert report({}, wave(0, {}, 4, tokens=0)).as_dict()["tokens_per_second"] is None


def test_whole_answers_are_no_errors() -> None:
    with answering("word", USAGE) as api:
        assert [one.errors for one in waves_of(api, 0.0)] == [()]


@pytest.mark.parametrize(
    ("usage", "why"),
    [(None, "no usage"), ({**USAGE, "completion_tokens": 0}, "without a token")],
)
def test_an_answer_without_tokens_or_usage_is_an_error(usage: Any, why: str) -> None:
    with answering("", usage) as api:
        (one,) = waves_of(api, 0.0)
    assert len(one.errors) == one.requests == 4
    assert all(why in error for error in one.errors)


def test_a_soak_of_a_server_that_is_gone_ends() -> None:
    waves = waves_of(Api("http://127.0.0.1:9/v1", "gone"), minutes=60.0)
    assert len(waves) == 3
    faults = report({}, *waves).faults
    assert faults[-1] == "given up: every request of 3 waves in a row failed"


def test_an_interrupt_ends_it_at_once() -> None:
    """Though the requests on their way would take longer."""
    wait = threading.Event()
    code = (
        "import sys\n"
        "from tetraspark.line.api import Api\n"
        "from tetraspark.measure.corpus import library\n"
        "from tetraspark.measure.sized import Density\n"
        "from tetraspark.measure.soak import SoakPlan, soak\n"
        "waves = soak(Api(sys.argv[1], 'm'), SoakPlan(1.0, 2, 8, 16, 0, 60.0), library(),"
        " Density(4.0, 0), dict)\n"
        "print('begun', flush=True)\n"
        "next(waves)\n"
    )
    with answering("word", USAGE, wait) as api:
        try:
            python = str(COMMAND.parent / "python")
            with subprocess.Popen(
                [python, "-c", code, api.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                began = time.monotonic()
                process.wait(20)
                assert time.monotonic() - began < 5
                assert process.returncode == -signal.SIGINT
        finally:
            wait.set()
