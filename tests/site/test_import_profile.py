"""Importing a profile: every variable ends in exactly one place, and the site loads."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.site.envfile import parse_envfile
from tetraspark.site.import_env import Imported, import_profile
from tetraspark.site.import_special import plain_devices
from tetraspark.site.import_table import (
    NOT_CARRIED,
    NOT_ON_A_SWITCH,
    RING,
    SIMPLE,
    NotCarriedError,
)
from tetraspark.site.load import load_source
from tetraspark.site.schema import Site
from tetraspark.site.site_text import site_text
from tetraspark.site.source import decode_source

FIXTURE = Path(__file__).parent / "fixtures" / "four.env"
SMALL = """\
HEAD_IP=10.1.0.1
WORKER_IPS="10.1.0.2 10.1.0.3 10.1.0.4"
TP_SIZE=4
MODEL_DIR=/models/v41
IMAGE=line:local
IB_HCA=rocep1s0f0
NFS_SERVER_IPS=10.2.0.1
"""


def imported(text: str | bytes) -> Imported:
    data = text if isinstance(text, bytes) else text.encode()
    return import_profile(parse_envfile(Path(".env.tp4"), data), "four", "four.key")


def outcomes(result: Imported) -> dict[str, str]:
    return {entry.name: entry.outcome for entry in result.report.entries}


def why(result: Imported, name: str) -> str:
    return next(entry.why for entry in result.report.entries if entry.name == name)


def site(result: Imported) -> Site:
    assert result.report.needs == ()
    text = site_text(result.draft, ())
    return load_source(decode_source(Path("four.toml"), text.encode())).site


def test_the_whole_profile_is_carried_and_loads() -> None:
    result = imported(FIXTURE.read_bytes())
    made = site(result)
    assert [node.host for node in made.nodes] == [f"10.1.0.{n}" for n in (1, 2, 3, 4)]
    assert [node.ssh_host for node in made.nodes] == [None, "sparky2", "sparky3", "sparky4"]
    assert [node.user for node in made.nodes] == [None, "bob", "bob", "bob"]
    assert made.model.path == "~/models/DeepSeek-V4.1-Flash"
    engine = made.engine
    assert (engine.tp, engine.ep, engine.context_length) == (4, 4, 1048576)
    assert (engine.watchdog_seconds, engine.head_mem_fraction) == (1800, 0.78)
    assert engine.extra_args == (
        "--fp8-gemm-backend", "flashinfer_cutlass", "--json-model-override-args", '{"a": 1}',
        "--sleep-on-idle",
    )  # fmt: skip
    assert made.fabric is not None and made.image is not None and made.guards is not None
    assert made.fabric.devices == ("rocep1s0f0", "roceP2p1s0f0")
    assert made.image.base is not None and made.image.base.endswith("abcdef")
    assert (made.image.tag, made.image.recipe) == ("spark-line:canary", "canary")
    assert made.image.build_args == {"PIP_INDEX": "https://mirror.example/simple", "JOBS": "4"}
    assert made.guards.loop_ngram == 48
    assert made.env["SITE_NICKNAME"] == "north #1" and made.env["LAST_LINE"] == "kept"
    assert made.env["SGLANG_RUST_BUILD_MODE"] == "never"
    assert result.api_key == "hush-hush-2" and made.api.key_file == "four.key"


def test_every_variable_of_the_profile_has_exactly_one_outcome() -> None:
    result = imported(FIXTURE.read_bytes())
    code = re.sub(r"(?s)\nif .*?\nfi\n", "\n", FIXTURE.read_text())
    names = set(re.findall(r"(?m)^(?:export )?([A-Z][A-Z0-9_]*)=", code)) - {"BROKEN"}
    whole = [entry for entry in result.report.entries if ": " not in entry.name]
    assert sorted(entry.name for entry in whole) == sorted(names)
    for entry in result.report.entries:
        assert bool(entry.keys) == (entry.outcome != "not carried")
        assert entry.outcome != "not carried" or entry.why
    assert [item.line for item in result.report.statements] == [91, 92, 92, 93, 94, 95]
    twice = next(entry for entry in whole if entry.name == "CONTEXT_LENGTH")
    assert (twice.line, twice.earlier) == (53, (52,))


def test_no_secret_reaches_the_site_or_the_report() -> None:
    result = imported(FIXTURE.read_bytes())
    assert "hush" not in site_text(result.draft, result.report.needs)
    assert "hush" not in str(result.report) and "hush" not in str(result.report.as_dict())
    assert outcomes(result)["HF_TOKEN"] == outcomes(result)["LEAKY"] == "not carried"


@pytest.mark.parametrize(
    "line",
    [
        'EXTRA_SGLANG_ARGS="--foo $API_KEY"',
        'EXTRA_CONTAINER_ENV="A=$API_KEY"',
        'EXTRA_SGLANG_ARGS="--admin-api-key hushhush1"',
        "PROXY=http://me:hushhush1@proxy",
        "API_KEY=$(echo hushhush1)",
        "NOTE=hf_hushhush1hushhush1hush",
        "BUILD_ARGS=PIP_TOKEN=hushhush1",
        "BUILD_DOCKERFILE=D\nBUILD_ARGS=SSH_KEYS=hushhush1",
        "WORKER_USER=bob:hushhush1",
        "SERVED_MODEL_NAME=https://hushhush1@x",
        'served="--api-key hushhush1 $(x)"',
    ],
)
def test_a_secret_is_found_wherever_it_hides(line: str) -> None:
    result = imported(f"{SMALL}API_KEY=hushhush1\n{line}\n")
    text = site_text(result.draft, result.report.needs) + str(result.report)
    assert "hushhush1" not in text, line


@pytest.mark.parametrize("value", ["none", "OFF", "dummy", "0", ""])
def test_the_launchers_words_for_no_key_mean_none(value: str) -> None:
    result = imported(f"{SMALL}API_KEY={value}\n")
    assert result.api_key is None and site(result).api.key_file is None
    assert outcomes(result)["API_KEY"] == "not carried"


def test_a_key_among_the_engine_arguments_goes_to_the_file() -> None:
    result = imported(SMALL + 'EXTRA_SGLANG_ARGS="--api-key hush --tp-size 4 -x --port=1"\n')
    made = site(result)
    assert (result.api_key, made.api.key_file) == ("hush", "four.key")
    assert "computes it from `api.port`" in why(result, "EXTRA_SGLANG_ARGS: --port")


def test_an_engine_argument_that_no_site_may_pass_is_reported() -> None:
    words = "--enable-metrics --config /x.yaml -x --use-r"
    result = imported(SMALL + f'EXTRA_SGLANG_ARGS="{words}"\n')
    assert site(result).engine.extra_args == ("-x",)
    assert "left to the plan" in why(result, "EXTRA_SGLANG_ARGS: --enable-metrics")
    assert "nothing checks" in why(result, "EXTRA_SGLANG_ARGS: --config")
    assert "no site may pass it" in why(result, "EXTRA_SGLANG_ARGS: --use-r")


def test_of_two_keys_the_engine_sees_the_later_one() -> None:
    result = imported(SMALL + "API_KEY=first\nEXTRA_SGLANG_ARGS='--api-key second'\n")
    assert result.api_key == "second"
    assert outcomes(result)["API_KEY"] == "not carried"


def test_a_digest_does_not_go_with_the_tag_and_is_reported() -> None:
    result = imported(SMALL.replace("line:local", "line:local@sha256:00"))
    image = site(result).image
    assert image is not None and image.tag == "line:local"
    assert "digest" in why(result, "IMAGE")


def test_a_base_image_without_a_digest_is_not_carried() -> None:
    result = imported(SMALL + "BASE_IMAGE=example/base:dev\n")
    image = site(result).image
    assert image is not None and image.base is None
    assert "digest" in why(result, "BASE_IMAGE")


def test_the_last_word_on_a_setting_wins_and_is_reported() -> None:
    result = imported(SMALL + "CONTEXT_LENGTH=9000\nEXTRA_SGLANG_ARGS='--context-length 8000 -x'\n")
    made = site(result)
    assert (made.engine.context_length, made.engine.extra_args) == (8000, ("-x",))
    assert outcomes(result)["CONTEXT_LENGTH"] == "not carried"
    assert "EXTRA_SGLANG_ARGS" in why(result, "CONTEXT_LENGTH")


def test_a_ring_profile_fills_the_ring_block() -> None:
    ring = (
        "NCCL_SWITCHLESS_RING_ONLY=1\nNCCL_HOST_DIR=$HOME/nccl\nNCCL_WORKER_DIR=/opt/nccl\n"
        "NCCL_ALGO=Ring\nNCCL_IB_SUBNET_PREFIX_LEN=24\nNCCL_MIN_NCHANNELS=2\nNFS_SHARE=0\n"
        "NCCL_MAX_NCHANNELS=2\nNCCL_P2P_LEVEL=SYS\nNCCL_OVERLAY_PIP=1\nNCCL_PIP_SO=/x/libnccl.so.2\n"
    )
    result = imported(SMALL + ring)
    made = site(result)
    assert made.fabric is not None and made.fabric.ring is not None and made.weights is not None
    assert made.fabric.topology == "ring" and made.weights.mode == "local"
    block = made.fabric.ring
    assert (block.channels_min, block.channels_max, block.subnet_prefix) == (2, 2, 24)
    assert (block.nccl_library_dir, block.worker_nccl_library_dir) == ("~/nccl", "/opt/nccl")
    assert block.nccl_target == "/x/libnccl.so.2"
    assert made.env == {"NCCL_P2P_LEVEL": "SYS", "SGLANG_RUST_BUILD_MODE": "never"}
    assert outcomes(result)["NFS_SERVER_IPS"] == outcomes(result)["NCCL_ALGO"] == "not carried"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        ("=a:1,b:1", ("a", "b")),
        ("a,,b", ("a", "b")),
        ("a, b", ("a", "b")),
        ("a:1,a:2", ("a",)),
    ],
)
def test_nccl_device_grammar_becomes_plain_names(text: str, names: tuple[str, ...]) -> None:
    found, note = plain_devices(text)
    assert found == names
    assert bool(note) == (text != "a,b")


@pytest.mark.parametrize(("text", "words"), [("^a", "leaves devices out"), ("=,", "without dev")])
def test_devices_that_only_the_nodes_know_are_asked_for(text: str, words: str) -> None:
    with pytest.raises(NotCarriedError, match=words):
        plain_devices(text)
    result = imported(SMALL.replace("IB_HCA=rocep1s0f0", f"IB_HCA={text}"))
    assert any("fabric.devices" in problem.seen for problem in result.report.needs)


@pytest.mark.parametrize(
    ("old", "new", "name", "need"),
    [
        ("TP_SIZE=4", "TP_SIZE=three", "TP_SIZE", "engine.tp"),
        ("TP_SIZE=4", "TP_SIZE=3", "TP_SIZE", "engine.tp"),
        ("HEAD_IP=10.1.0.1", "HEAD_IP=127.0.0.1", "HEAD_IP", "without `host`"),
        ("IMAGE=line:local", "IMAGE=LINE", "IMAGE", "image.tag"),
        ("TP_SIZE=4", "TP_SIZE=4\nNNODES=3", "NNODES", "NNODES=3"),
        ("MODEL_DIR=/models/v41", "MODEL_DIR=$(pwd)", "MODEL_DIR", "model.path"),
        ("NFS_SERVER_IPS=10.2.0.1", "NFS_SERVER_IPS='a b'", "NFS_SERVER_IPS", "nfs_server"),
    ],
)
def test_what_would_not_load_is_left_as_a_comment_and_asked_for(
    old: str, new: str, name: str, need: str
) -> None:
    result = imported(SMALL.replace(old, new))
    assert outcomes(result)[name] == "not carried" and why(result, name)
    assert any(need in problem.seen for problem in result.report.needs)
    text = site_text(result.draft, result.report.needs)
    assert "# STILL NEEDED: " in text
    tomllib.loads(text)


def test_the_variables_of_the_real_profile_are_all_known() -> None:
    known = {*SIMPLE, *NOT_CARRIED, *NOT_ON_A_SWITCH, *RING}
    for name in ("TP_SIZE", "DSV41_MAX_NEW_TOKENS", "SHM_SIZE", "NCCL_HOST_DIR", "NCCL_PIP_SO"):
        assert name in known
    unknown = [
        entry.name
        for entry in imported(FIXTURE.read_bytes()).report.entries
        if entry.why.startswith("unknown")
    ]
    assert unknown == ["SITE_NICKNAME", "LAST_LINE"]


LINES = [
    *(row for row in FIXTURE.read_text().split("\n") if re.match(r"[A-Z]\w*=[^$`(]*$", row)
      and row.count('"') % 2 == 0 and "--" not in row),
    'EXTRA_SGLANG_ARGS="--tp 2 --x y --port 1 --context-length z"', "EXTRA_SGLANG_ARGS=\"'x\"",
    'EXTRA_CONTAINER_ENV="A=1 PORT=2 junk B= X_TOKEN=q CONTEXT_LENGTH=4096"', "NNODES=5",
    "API_KEY=hush", "IB_HCA=^a", "BUILD_ARGS=junk", "WORKER_IPS=a,b", "WORKER_HOSTS=x", "TP_SIZE=x",
    "WORKER1_IP=10.0.0.9", "WORKER1_HOST=w1", "NCCL_SWITCHLESS_RING_ONLY=1", "PORT=", "NFS_SHARE=2",
    "TP_SIZE=$(x)",
    "IMAGE=a:b@sha256:00", "NCCL_SWITCHLESS_RING_ONLY=2", "RANK=1", "P=$HOME/x", "HEAD_IP=::1",
]  # fmt: skip
RANDOM = st.builds(
    lambda name, value: f"{name}='{value}'",
    st.sampled_from([*SIMPLE, *RING, *NOT_CARRIED, "WORKER_USER", "NFS_CLIENTS", "Q", "_x"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x17F, exclude_characters="'\x7f")),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES), RANDOM), max_size=25))
def test_every_variable_of_any_profile_has_exactly_one_outcome(rows: list[str]) -> None:
    result = imported("\n".join(rows))
    names = {row.split("=", 1)[0] for row in rows}
    whole = [entry.name for entry in result.report.entries if ": " not in entry.name]
    assert sorted(whole) == sorted(names)
    for entry in result.report.entries:
        assert bool(entry.keys) == (entry.outcome != "not carried"), entry
        assert entry.outcome != "not carried" or entry.why, entry
    text = site_text(result.draft, result.report.needs)
    document = tomllib.loads(text)
    if not result.report.needs:
        load_source(decode_source(Path("x.toml"), text.encode()))
    written = {entry.name: entry.keys for entry in result.report.entries}
    for key in {key for keys in written.values() for key in keys if key.startswith("env.")}:
        assert key.removeprefix("env.") in document["env"]


@pytest.mark.parametrize(
    ("text", "value"), [("2", True), ("0", False), ("1", None), ("force", None)]
)
def test_folded_sampling_is_a_key_of_the_site(text: str, value: bool | None) -> None:
    name = "SGLANG_DSPARK_FOLDED_SAMPLING"
    for line in (f"{name}={text}\n", f'EXTRA_CONTAINER_ENV="{name}={text}"\n'):
        result = imported(SMALL + line)
        made = site(result)
        assert made.speculative is not None
        assert made.speculative.sampled_in_graph is value
        assert name not in made.env
    if value is None:
        assert text in why(result, f"EXTRA_CONTAINER_ENV: {name}")


def test_build_arguments_without_a_dockerfile_are_dropped_with_the_reason() -> None:
    result = imported("BUILD_ARGS='--build-arg JOBS=4'\n")
    assert "takes no arguments" in why(result, "BUILD_ARGS")
