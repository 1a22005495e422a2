"""`qualify lanes`: what it refuses at once, and what a failure tells on every node."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from tests.measure.test_meeting import free_port
from tests.serving import COMMAND, ROOT
from tetraspark.cli.main import app
from tetraspark.collectives.failure import RefusedError
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.measure.refusals import refused

GOOD = {
    "--rank": "0",
    "--world": "2",
    "--meet": "10.0.0.1:9000",
    "--node": "spark1",
    "--devices": "rocep1s0f0",
}


@pytest.mark.parametrize(
    ("option", "value", "seen", "wanted"),
    [
        ("--rank", "2", "2", "below --world 2"),
        ("--meet", "10.0.0.1", "10.0.0.1", "HOST:PORT"),
        ("--meet", "foo", "foo", "HOST:PORT"),
        ("--meet", ":9000", ":9000", "HOST:PORT"),
        ("--meet", "a:70000", "a:70000", "1 to 65535"),
        ("--meet", "a:0", "a:0", "1 to 65535"),
        ("--meet", "a:٩٠٠٠", "a:٩٠٠٠", "HOST:PORT"),
        ("--meet", "a b:9000", "a b:9000", "HOST:PORT"),
        ("--devices", "rocep1s0f0@nowhere", "'nowhere'", "DEVICE[:PORT][@ADDRESS]"),
        ("--devices", "a,,b", "'' is not DEVICE[:PORT][@ADDRESS]", "DEVICE[:PORT][@ADDRESS]"),
        ("--devices", "a/b", "'a/b' is not", "DEVICE[:PORT][@ADDRESS]"),
        ("--devices", "../etc", "'../etc' is not", "DEVICE[:PORT][@ADDRESS]"),
        ("--devices", "a:²", "'a:²' is not", "DEVICE[:PORT][@ADDRESS]"),
        ("--devices", "", "'' is not", "DEVICE[:PORT][@ADDRESS]"),
        ("--devices", "a,a", "a,a", "1 to 4 devices, each once"),
        ("--devices", "a,b,c,d,e", "a,b,c,d,e", "1 to 4 devices, each once"),
        ("--node", "", "''", "a name of letters"),
        ("--node", "spark 1", "'spark 1'", "a name of letters"),
        ("--min-mtu", "1500", "1500", "one of 256, 512, 1024, 2048, 4096"),
    ],
)
def test_bad_usage_is_refused_at_once(option: str, value: str, seen: str, wanted: str) -> None:
    words = [word for pair in ({**GOOD, option: value}).items() for word in pair]
    result = CliRunner().invoke(app, ["qualify", "lanes", *words])
    assert isinstance(result.exception, UsageError)
    (problem,) = result.exception.problems
    assert problem.where == option
    assert seen in problem.seen
    assert wanted in problem.wanted
    assert option in problem.fix


Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Run:
    port = free_port()

    def start(rank: int, world: int, *words: str) -> "subprocess.Popen[str]":
        told = f"--rank {rank} --world {world} --meet 127.0.0.1:{port} --node node{rank} --json"
        return subprocess.Popen(
            [str(COMMAND), "qualify", "lanes", *told.split(), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def problems(rank: "subprocess.Popen[str]", status: int) -> list[Problem]:
    output, errors = rank.communicate(timeout=60)
    assert rank.returncode == status, errors
    assert "Traceback" not in errors
    found = [Problem(**one) for one in json.loads(output)["problems"]]
    assert all(one.where and one.seen and one.wanted and one.fix for one in found)
    return found


def page() -> str:
    """Return what the page says of a first run."""
    text = (ROOT / "docs" / "roce.md").read_text()
    return text[text.index("## First run") : text.index("## How it works")]


def test_a_missing_rank_is_named_with_the_command_that_starts_it(begin: Run) -> None:
    devices = ("--devices", "rocep1s0f0@10.0.0.1,roceP2p1s0f0", "--limit", "1")
    (problem,) = problems(begin(0, 3, *devices), 1)
    assert problem.where == "node node0, rank 0"
    assert problem.seen.startswith("after 1 s rank 1, 2 had not come to 127.0.0.1:")
    assert " had not come to " in page() and problem.fix.splitlines()[0] in page()
    for rank, command in zip((1, 2), problem.fix.splitlines()[-2:], strict=True):
        assert command.startswith(f"tetraspark qualify lanes --rank {rank} --world 3 --meet 127.")
        assert " --devices rocep1s0f0@ADDRESS,roceP2p1s0f0 " in command


def test_a_missing_rank_0_is_named_with_the_command_that_starts_it(begin: Run) -> None:
    (problem,) = problems(begin(1, 3, "--devices", "rocep1s0f0", "--limit", "1"), 1)
    assert problem.where == "node node1, rank 1"
    assert problem.seen.startswith("after 1 s nobody listens at 127.0.0.1:")
    assert "start rank 0 there: tetraspark qualify lanes --rank 0 --world 3" in problem.fix


def test_a_device_that_is_not_there_is_told_on_every_node(begin: Run) -> None:
    ranks = [begin(rank, 2, "--devices", "no0,no1") for rank in (0, 1)]
    first, other = (problems(rank, 1) for rank in ranks)
    assert first == other
    wheres = [f"node node{rank}, device no{lane}" for rank in (0, 1) for lane in (0, 1)]
    assert [one.where for one in first] == wheres
    for one in first:
        assert one.seen.startswith("it is not there; there is ")
        assert one.wanted == "this device"
        assert "ibv_devinfo -l" in one.fix and "--device=/dev/infiniband" in one.fix


def test_options_that_do_not_fit_together_are_told_on_every_node(begin: Run) -> None:
    same = ("--node", "spark1")
    ranks = [
        begin(0, 2, "--devices", "no0,no1", *same),
        begin(1, 2, "--devices", "no0", "--min-mtu", "1024", "--rounds", "7", *same),
    ]
    first, other = (problems(rank, 1) for rank in ranks)
    assert first == other
    assert [(one.where, one.seen) for one in first] == [
        ("--devices", "spark1 2 devices, spark1 1 devices"),
        ("--min-mtu", "spark1 4096, spark1 1024"),
        ("--rounds", "spark1 100, spark1 7"),
        ("--node", "spark1, spark1"),
    ]


@pytest.mark.parametrize(
    ("reason", "where", "seen", "fix"),
    [
        (
            "cannot set up its end (9 bytes): node b, device x: port 1 is DOWN; wanted: ACTIVE",
            "node b, device x",
            "port 1 is DOWN",
            "rdma link show",
        ),
        (
            "cannot set up its end (9 bytes): node b, device x: active RDMA MTU 1024; wanted: 4096",
            "node b, device x",
            "active RDMA MTU 1024",
            "ibv_devinfo -d x; ip link set NETDEV mtu 9000",
        ),
        (
            "cannot set up its end (9 bytes): node b, device x: only ::1; wanted: a RoCE v2 GID",
            "node b, device x",
            "only ::1",
            "ibv_devinfo -v -d x; ip -brief address",
        ),
        (
            "cannot set up its end (9 bytes): rocep1s0f0: ibv_reg_mr (see ulimit -l): no memory",
            "node b, rank 1",
            "cannot set up its end (9 bytes): rocep1s0f0: ibv_reg_mr (see ulimit -l): no memory",
            "ulimit -l unlimited; in a container: --ulimit memlock=-1",
        ),
        (
            "proxy is 'a', rank 0 has 'b'",
            "node b, rank 1",
            "proxy is 'a', rank 0 has 'b'",
            "install one tetraspark on every node",
        ),
    ],
)
def test_a_refusal_is_one_problem(reason: str, where: str, seen: str, fix: str) -> None:
    (problem,) = refused(RefusedError([(1, reason)]), ["a", "b"])
    assert (problem.where, problem.seen, problem.fix) == (where, seen, fix)
    assert problem.wanted and "wanted" not in problem.wanted


def test_the_page_has_a_command_that_runs_and_the_options_that_there_are() -> None:
    first_run = page()
    command = first_run[first_run.index("tetraspark qualify") :].split("```")[0]
    words = shlex.split(command.replace("\\\n", " "))[1:]
    # 192.0.2.0/24 is nobody's: what is read is the command, not this machine's addresses.
    words[words.index("--meet") + 1] = "192.0.2.1:9000"
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, RunError)
    assert "192.0.2.1 is no address of this machine" in str(result.exception)
    shown = set(re.findall(r"^\| `(--[a-z-]+)`", first_run, re.MULTILINE))
    told = CliRunner().invoke(app, ["qualify", "lanes", "--help"]).output
    assert shown == {"--world", "--meet", "--min-mtu", "--rounds", "--limit"}
    assert all(option in told for option in shown)
