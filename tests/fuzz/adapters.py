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
from tetraspark.fleet.facts import Said as Answer
from tetraspark.fleet.local import LocalRunner
from tetraspark.fleet.login import Login
from tetraspark.fleet.progress_shape import StoredProgress
from tetraspark.fleet.record_file import parse_record
from tetraspark.fleet.shared_memory import is_segment_name
from tetraspark.images.build_log import BuildLog
from tetraspark.line.api import api_of
from tetraspark.line.effective import differences, read_effective
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.guard_settings import limits_of
from tetraspark.line.launch_image import IMAGE, baked
from tetraspark.line.plan import Plan
from tetraspark.line.ranks import RankStatus
from tetraspark.line.run_shapes import EFFECTIVE, StoredPlan, StoredState
from tetraspark.measure.counters import of_ranks
from tetraspark.measure.events import events
from tetraspark.measure.reader import Reader
from tetraspark.ring.perftest import read_perftest
from tetraspark.site.load import load_site
from tetraspark.watch.act import acted_findings
from tetraspark.watch.board import Board
from tetraspark.watch.http import Server, serve_page
from tetraspark.watch.record import Said, StoredActs, choose
from tetraspark.watch.samples import rank_sample, root_of
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
            commands={**facts.commands, name: Answer(0, text, "")},
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
    facts = replace(seeds.spark_facts()[0], commands={IMAGE: Answer(0, text, "")})
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


def stored_plan(text: str) -> object:
    """Read plan.json, and use it as the verbs do that have no other."""
    plan = parse_record(raw(text), StoredPlan)
    nodes = [rank["node"] for rank in plan["ranks"]]
    reached = [Login.of(one) for one in plan.get("logins", ())]
    return nodes, reached, limits_of(plan), api_of(plan, None, LocalRunner())


def a_plan() -> tuple[str, ...]:
    """Return the plan of a fleet as it is stored."""
    return (json.dumps(_plan().as_dict()),)


def stored_state(text: str) -> object:
    """Read state.json: what is tolerated, and what may be removed."""
    state = parse_record(raw(text), StoredState)
    told = [(one["id"], one["node"], one["observed"]) for one in state.get("tolerated", ())]
    files = [is_segment_name(one) for one in state.get("shared_memory", ())]
    return state["phase"], told, files, 1.0 - state.get("since", 0.0)


def stored_effective(text: str) -> int:
    """Count what runs as planned."""
    return sum(one["same"] for one in parse_record(raw(text), EFFECTIVE))


def stored_progress(text: str) -> object:
    """Read what a communicator wrote, as `status`, a watch and a soak do."""
    told = parse_record(raw(text), StoredProgress)
    status = RankStatus(0, "n", "running", "", (), (), "", told, None)
    return rank_sample(status, None), root_of(told), of_ranks([told])


def stored_acts(text: str) -> object:
    """Read what watches have done."""
    acts = parse_record(raw(text), StoredActs)["acts"]
    return acted_findings(acts, "20260101-000000-000000"), choose("restart-once", acts, False)


def stored_words(text: str) -> float:
    """Read what a watch last said."""
    said = parse_record(raw(text), Said)
    return 1.0 - float(said["at"])
