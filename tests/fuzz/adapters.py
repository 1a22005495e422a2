"""How a text reaches the parsers that take more than a text."""

import atexit
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import httpx

from tests.fuzz import seeds
from tests.watch import status_client, status_lines
from tetraspark.doctor.burn import read_burn
from tetraspark.fabric.inventory import read_fabric
from tetraspark.fleet.command import Result
from tetraspark.fleet.container import read_container
from tetraspark.fleet.facts import Said
from tetraspark.images.build_log import BuildLog
from tetraspark.line.effective import differences, read_effective
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.launch_image import IMAGE, baked
from tetraspark.line.plan import Plan
from tetraspark.measure.events import events
from tetraspark.measure.reader import Reader
from tetraspark.ring.perftest import read_perftest
from tetraspark.site.load import load_site
from tetraspark.watch.board import Board
from tetraspark.watch.http import Server, serve_page
from tetraspark.watch.stacks import Stack
from tetraspark.weights.chat_template import chat_template

FOREVER = 1e18
SITE = seeds.ROOT / "sites" / "four-sparks-switch.toml"


def raw(text: str) -> bytes:
    """Return the bytes of a text, with what no encoder takes as one byte that none reads."""
    return text.encode("utf-8", "surrogatepass")


def container(text: str) -> object:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [read_container(one) for one in found] if isinstance(found, list) else None


def stream(text: str) -> Iterator[dict[str, Any]]:
    response = httpx.Response(200, content=raw(text))
    reader = Reader(64)
    for data in events(response, FOREVER):
        try:
            reader.read(data, 0.0)
        except (AttributeError, TypeError, KeyError):
            break  # `stream.ask` tells these as an answer of another shape
        yield data
    reader.fault()


def fabric(text: str) -> object:
    """Put a text in place of each answer and file of a node in turn."""
    facts = seeds.spark_facts()[len(text) % 2]
    names, paths = sorted(facts.commands), sorted(facts.files)
    name, path = names[hash(text) % len(names)], paths[hash(text) % len(paths)]
    return read_fabric(
        replace(
            facts,
            commands={**facts.commands, name: Said(0, text, "")},
            files={**facts.files, path: text},
        )
    )


def printed() -> tuple[str, ...]:
    return tuple(
        text
        for facts in seeds.spark_facts()
        for text in (*(said.stdout for said in facts.commands.values()), *facts.files.values())
        if text.strip()
    )


def build_log(text: str) -> object:
    """Feed a builder's output line by line."""
    log = BuildLog()
    steps = [log.feed(line) for line in text.splitlines()]
    return steps, log.step, log.last_lines


def burn(text: str) -> object:
    """Read the output of a burn that ended well."""
    return str(read_burn(Result(0, text, "")))


def perftest(text: str) -> object:
    """Read the output of the client of a pair that ended well."""
    return read_perftest(Result(0, text, ""), Result(0, "", ""))


def stacks(text: str) -> list[str]:
    """Return the place that each way of asking for a stack tells."""
    return [Stack(0, 7, "x", "S", how, text).place for how in ("signal", "py-spy", "kernel")]


def template(text: str) -> object:
    """Look for a template in a whole file and in one that was cut."""
    return [chat_template({}, frozenset(), text, cut) for cut in (False, True)]


def image_variables(text: str) -> object:
    """Judge what `docker image inspect` says at a launch."""
    facts = replace(seeds.spark_facts()[0], commands={IMAGE: Said(0, text, "")})
    return baked(facts, set())


def server_info(text: str) -> object:
    """Compare with a plan what an engine says it runs with, as `Api.server_info` returns it."""
    try:
        info = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return differences(_plan(), read_effective(_plan(), info)) if isinstance(info, dict) else None


def status_request(text: str) -> str:
    """Ask the status page with a text as the head of the request; a fault of its own is an error.

    An answer that is no content is a sentence that says so.
    """
    answer = status_client.raw(_status_server(), raw(text) + b"\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    code = status_client.status(head)
    assert code in ANSWERS, answer
    if code not in (200, 503) and body:
        assert re.fullmatch(rb"%d [^\n]+\n" % code, body), answer
        assert b"\nContent-Type: text/plain" in head, answer
    return body.decode()


ANSWERS = (200, 400, 404, 405, 413, 421, 431, 503, 505)
"""Every status that the page has for a request; 500 is none of them."""


@cache
def _status_server() -> Server:
    board = Board()
    board.post(status_lines.degraded(time.time()))
    server = serve_page(board, status_client.LOOPBACK, 0)
    atexit.register(server.close)
    return server


@cache
def _plan() -> Plan:
    return fleet_plan(load_site(SITE))
