"""Every pure parser of the project, what feeds it, and the errors it says it raises."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import seeds
from tests.fuzz.adapters import (
    a_plan,
    build_log,
    burn,
    container,
    fabric,
    image_variables,
    perftest,
    printed,
    raw,
    server_info,
    stacks,
    status_request,
    stored_acts,
    stored_effective,
    stored_plan,
    stored_progress,
    stored_state,
    stored_words,
    stream,
    template,
)
from tetraspark.bundle.power import stopped_short
from tetraspark.bundle.redaction import Redactor
from tetraspark.collectives.gid import parse_gid
from tetraspark.collectives.liveness import parse_stat
from tetraspark.doctor.gpu import mebibytes, rows
from tetraspark.engine.metadata import project_metadata
from tetraspark.engine.pins import read_pins
from tetraspark.engram.layout import read_tables
from tetraspark.engram.manifest import read_manifest
from tetraspark.engram.request import read_event
from tetraspark.errors import TetrasparkError
from tetraspark.fabric.inventory_ethtool import offload, statistics
from tetraspark.fabric.inventory_rdma import active_mtus
from tetraspark.fabric.inventory_tc import text_rules
from tetraspark.fabric.nccl_conf import parse_conf
from tetraspark.fabric.nccl_library import mapped_libraries
from tetraspark.fabric.nccl_log import read_nccl
from tetraspark.fabric.nccl_ring_log import read_ring
from tetraspark.fabric.nccl_version import parse_version
from tetraspark.fabric.saved_file import parse_json
from tetraspark.fabric.traffic_run import read_gigabits
from tetraspark.fleet import docker_failure, docker_log, ssh_failure
from tetraspark.fleet.facts import Said
from tetraspark.fleet.log_mirror import read_cursor
from tetraspark.fleet.login import Login
from tetraspark.fleet.meminfo import large_blocks, read_meminfo
from tetraspark.fleet.plain import plain
from tetraspark.fleet.rsync_failure import rsync_problem
from tetraspark.fleet.run_files import parse_exit
from tetraspark.images import instruction
from tetraspark.images.built import parse_contents, parse_inspect
from tetraspark.line.engine_causes import cause_of
from tetraspark.line.engine_facts import read_engine
from tetraspark.line.engine_log import parse, read_receipt
from tetraspark.line.kv_pool import read_usage
from tetraspark.line.launch_interface import hosts_entries, read_interfaces
from tetraspark.line.startup_guard import count_no_memory
from tetraspark.measure.collectives import parse_size
from tetraspark.measure.counters import mem_available_gib
from tetraspark.measure.quality.extract import code_of, json_of
from tetraspark.measure.quality.numerals import numbers
from tetraspark.ring.plan import RingPlan, is_plan
from tetraspark.site.engine_variables import parse_names
from tetraspark.site.envfile import parse_envfile
from tetraspark.site.hca import parse as parse_hca
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source
from tetraspark.watch.engine_metrics import read_log, read_metrics
from tetraspark.watch.look import NOTHING_TOLD
from tetraspark.weights.index import read_index
from tetraspark.weights.mounted import mount_of
from tetraspark.weights.sums_file import parse_sums
from tetraspark.weights.volume import parse_volume

LOGIN = Login("spark2", "10.0.22.2", None, None)


@dataclass(frozen=True)
class Parser:
    """`read` takes a text; what it raises besides the project's own errors is in `raises`.

    A parser whose docstring says ValueError has callers that turn it into a Problem.
    """

    name: str
    read: Callable[[str], object]
    seeds: Callable[[], tuple[str, ...]]
    raises: tuple[type[Exception], ...] = (TetrasparkError,)


def _of(name: str, read: Callable[[str], object], *given: str, error: bool = False) -> Parser:
    return Parser(name, read, lambda: given, (TetrasparkError, *((ValueError,) if error else ())))


def _files(name: str, read: Callable[[str], object], glob: str, error: bool = False) -> Parser:
    raises = (TetrasparkError, *((ValueError,) if error else ()))
    return Parser(name, read, lambda: seeds.files(glob), raises)


def _lines(name: str, read: Callable[[str], object], glob: str) -> Parser:
    return Parser(name, read, lambda: seeds.lines(glob))


LOGS = "tests/line/logs/**/*.log"
SSE = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in seeds.CHUNKS) + "data: [DONE]\n\n"
PLANS = "docs/*.md"

PARSERS = (
    Parser("fabric inventory", fabric, printed),
    _of("GID", parse_gid, seeds.GID, error=True),
    _of("process status", parse_stat, seeds.STAT, error=True),
    _of("meminfo", read_meminfo, seeds.MEMINFO),
    _of("meminfo of a report", mem_available_gib, seeds.MEMINFO),
    _of("buddyinfo", large_blocks, seeds.BUDDYINFO),
    _of("dmesg", count_no_memory, seeds.DMESG),
    _of("journal of a boot", stopped_short, seeds.DMESG),
    _of("nvidia-smi", lambda text: rows(Said(0, text, ""), 5), seeds.SMI),
    _of("burn", burn, '{"tflops": 61.2, "clocks": ["2200", "72.1"]}'),
    _of("nvidia-smi memory", mebibytes, "19135 MiB", "[N/A]"),
    _of("ip addr", read_interfaces, seeds.ADDRESSES),
    _of("mounts", lambda text: mount_of(text, "/srv/model"), seeds.MOUNTS),
    _of("mapped libraries", mapped_libraries, seeds.MAPS),
    _of("ib_write_bw of a ring", perftest, seeds.PERFTEST),
    _of("ib_write_bw of rails", read_gigabits, seeds.PERFTEST),
    _of("stacks", stacks, *seeds.STACKS),
    _of("hosts", lambda text: hosts_entries(text, "spark1"), seeds.HOSTS),
    _of("ethtool offload", offload, "hw-tc-offload: on\n"),
    _of("ethtool statistics", statistics, "NIC statistics:\n     rx_packets: 12\n"),
    _of("ibv_devinfo", active_mtus, "hca_id: a\n\tactive_mtu:\t4096 (5)\n"),
    _of("tc rules", lambda text: text_rules("eth0", text), "filter protocol ip pref 1 flower\n"),
    _of("nccl.conf", parse_conf, seeds.NCCL_CONF),
    _of("NCCL version", parse_version, "2.30.7", error=True),
    _lines("NCCL log", lambda text: read_nccl(text.splitlines()), LOGS),
    _lines("NCCL ring log", lambda text: read_ring(text.splitlines()), LOGS),
    _lines("engine log", lambda text: parse(0, text.splitlines()), LOGS),
    _lines("engine facts", lambda text: read_engine(text.splitlines()), LOGS),
    _lines("engine cause", lambda text: cause_of(text, "ring"), LOGS),
    _of("receipt", read_receipt, '{"tetraspark": "engine", "pid": 7, "rank": 0}'),
    _of("pool usage", read_usage, seeds.BATCH),
    Parser("engine metrics", read_metrics, seeds.metrics),
    _of("engine log of a watch", lambda t: read_log([t], NOTHING_TOLD), *seeds.BATCHES),
    _files("docker inspect", container, "tests/fleet/inspect/*.json", error=True),
    _of("docker image inspect", parse_inspect, seeds.IMAGE, error=True),
    _of("image variables", image_variables, seeds.IMAGE),
    _of("docker volume", lambda t: parse_volume(Said(0, t, "")), seeds.VOLUME, error=True),
    _of("docker build", build_log, *seeds.BUILD),
    _of("image contents", parse_contents, seeds.CONTENTS, error=True),
    _of("docker logs", docker_log.parse, seeds.STAMPED),
    _of("docker failure", docker_failure.classify, *seeds.DOCKER),
    _of("docker problem", lambda t: docker_failure.docker_problem(LOGIN, "x", t), *seeds.DOCKER),
    _of("ssh failure", lambda text: ssh_failure.classify(text, bool(len(text) % 2)), *seeds.SSH),
    _of("rsync failure", lambda text: rsync_problem(LOGIN, 11, text, "/x"), *seeds.RSYNC),
    _of("terminal text", plain, "\x1b[31mred\x1b[0m\r\n"),
    _files("Dockerfile", lambda text: list(instruction.parse(text)), "docs/build.md"),
    _files("env file", lambda t: parse_envfile(Path("x"), raw(t)), "tests/site/fixtures/*.env"),
    _files("site", lambda t: load_source(decode_source(Path("x"), raw(t))), "sites/*.toml"),
    _files("variables table", parse_names, "src/tetraspark/site/*.variables.txt"),
    _of("device list", parse_hca, "=rocep1s0f0:1,rocep1s0f1", error=True),
    _of("ring plan", lambda text: RingPlan.parse(text, "x"), '{"id": "a", "version": 1}'),
    _of("is it a ring plan", is_plan, '{"id": "a", "version": 1, "members": [], "paths": []}'),
    _of("saved JSON", lambda text: parse_json(text, "x", "y", "z"), '{"a": [1, 2.5, null]}'),
    _of("weights index", read_index, seeds.INDEX, error=True),
    _of("weights index, cut", lambda text: read_index(text, True), seeds.INDEX),
    _of("sums", lambda text: parse_sums(text, "x"), seeds.SUMS, error=True),
    _files("Engram tables", read_tables, "models/tiny/config.json", error=True),
    _of("Engram manifest", read_manifest, '{"format": 1, "rows": [0, 9]}', error=True),
    _of("Engram event", read_event, '{"event": "problem", "where": "x", "seen": "y"}'),
    _of("wheel metadata", read_pins, "Name: sglang\nVersion: 0.5.23\nRequires-Dist: torch==2\n"),
    _files("pyproject", lambda text: project_metadata(text, "sglang"), "pyproject.toml"),
    _of("chat template", template, '{"chat_template": "{{ messages }}"}'),
    _of("server info", server_info, seeds.SERVER_INFO),
    _of("event stream", lambda text: list(stream(text)), SSE, error=True),
    _of("sizes", lambda text: parse_size(text, "--sizes"), "64KiB", "2M", error=True),
    _of("code of an answer", code_of, "```python\nprint(1)\n```\n"),
    _of("numbers of an answer", numbers, "1,234.5 and -7 or 3/4"),
    _of("status request", status_request, *seeds.REQUESTS),
    _of("redaction", Redactor(("sk-secret",)).clean, "API_KEY=sk-secret --token x 'a': \"b\""),
    Parser("plan of a run", stored_plan, a_plan, (TetrasparkError, ValueError)),
    _of("state of a run", stored_state, seeds.STATE, error=True),
    _of("effective values of a run", stored_effective, seeds.EFFECTIVE, error=True),
    _of("collectives of a rank", stored_progress, seeds.PROGRESS, error=True),
    _of("end of a rank", lambda text: str(parse_exit(raw(text))), "137 1796000000.25", error=True),
    _of(
        "cursor of a log",
        lambda text: read_cursor(raw(text)).position.since,
        seeds.CURSOR,
        error=True,
    ),
    _of("acts of watches", stored_acts, seeds.ACTS, error=True),
    _of("words of a watch", stored_words, seeds.WORDS, error=True),
    _of("JSON of an answer", json_of, '```json\n{"a": 1}\n```', error=True),
)
