"""Traffic of our own: which flows, when it is refused, and how the two ends of one are run."""

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fabric.example import DEVICES
from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks, alternating, pair, ring, switched
from tetraspark.errors import RunError
from tetraspark.fabric.traffic import PROGRAM, Flow, flows, memory_available, refusals
from tetraspark.fabric.traffic_run import Rate, run_flows, slow
from tetraspark.fleet.command import NodeCommand, OnLine, Result
from tetraspark.fleet.facts import Facts, Said

SITE = dict.fromkeys(NAMES, DEVICES)
REPORT = """
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 1048576    58471            0.00               196.12             0.023380
"""


def planned(sparks: Sparks, nodes: tuple[str, ...] = NAMES) -> tuple[Flow, ...]:
    fabrics = {name: sparks.fabric(name) for name in nodes}
    return flows(nodes, fabrics, dict.fromkeys(nodes, DEVICES), 5)


@pytest.mark.parametrize(
    ("sparks", "nodes", "count"),
    [(ring(), NAMES, 8), (alternating(), NAMES, 8), (switched(), NAMES, 8), (pair(), NAMES[:2], 4)],
)
def test_every_function_with_a_link_is_in_a_flow(
    sparks: Sparks, nodes: tuple[str, ...], count: int
) -> None:
    found = planned(sparks, nodes)
    assert len(found) == count
    ends = {end for flow in found for end in flow.rail.split(" - ")}
    assert ends == {f"{port.node} {port.rdma}" for port in sparks.ports if port.up
                    and port.node in nodes}  # fmt: skip
    ports = [flow.listen.argv[flow.listen.argv.index("--port") + 1] for flow in found]
    assert len(set(ports)) == count


def test_a_flow_names_device_index_and_the_address_on_its_own_cable() -> None:
    sparks = ring()
    sparks.port("spark2", 1, 0).gid_index = 5
    flow = planned(sparks)[0]
    assert (flow.server, flow.client, flow.rail) == (
        *("spark1", "spark2", "spark1 rocep1s0f0 - spark2 rocep1s0f1"),
    )
    assert str(flow.listen) == (
        "timeout 30 /usr/bin/ib_write_bw --ib-dev rocep1s0f0 --gid-index 3 --port 18515 "
        "--size 1048576 --duration 5 --bidirectional --report_gbits --CPU-freq"
    )
    assert "--gid-index 5" in str(flow.connect) and flow.connect.argv[-1] == "10.10.0.10"


def test_a_function_without_a_usable_gid_or_outside_the_site_is_left_out() -> None:
    sparks = ring()
    sparks.port("spark2", 1, 1).address = None
    assert len(planned(sparks)) == 7
    fabrics = {name: ring().fabric(name) for name in NAMES}
    first = dict.fromkeys(NAMES, ("rocep1s0f0", "rocep1s0f1"))
    assert len(flows(NAMES, fabrics, first, 5)) == 4


def idle(node: str, available: int = 100 << 30) -> Facts:
    """Facts of a node that may be loaded."""
    qp = [{"ifindex": 0, "ifname": "rocep1s0f0", "port": 1, "lqpn": 1, "type": "GSI"}]
    return replace(
        ring().facts(node),
        files={"/proc/meminfo": f"MemFree: 1 kB\nMemAvailable:   {available >> 10} kB\n"},
        sizes={PROGRAM: 172032},
        commands={"queue pairs": Said(0, json.dumps(qp), "")},
    )


def refused(one: Facts) -> list[str]:
    facts = {name: idle(name) for name in NAMES} | {"spark1": one}
    found = refusals(facts, planned(ring()))
    assert {problem.where for problem in found} <= {"spark1"}
    assert all(problem.fix for problem in found)
    return [problem.seen for problem in found]


def test_an_idle_fleet_is_not_refused() -> None:
    assert refused(idle("spark1")) == []


def test_L74_traffic_is_sized_by_what_is_available_and_refused_when_that_is_little() -> None:
    assert refused(idle("spark1", 3 << 30)) == ["3.0 GiB available, 8 MiB to pin"]
    assert memory_available("MemTotal: 5 kB\nMemAvailable:    21 kB\n") == 21 << 10
    assert memory_available("MemFree: 1 kB\n") is None
    silent = replace(idle("spark1"), files={})
    assert refused(silent) == ["MemAvailable is not shown"]


def test_L74_traffic_is_refused_while_a_server_runs() -> None:
    connected = [{"ifname": "rocep1s0f0", "type": "RC", "pid": 911, "comm": "sglang::schedul"}]
    busy = {"queue pairs": Said(0, json.dumps(connected), "")}
    assert refused(replace(idle("spark1"), commands=busy)) == [
        "RDMA connections are open: sglang::schedul (pid 911)"
    ]
    unknown = {"queue pairs": Said(1, "", "no")}
    assert refused(replace(idle("spark1"), commands=unknown)) == [
        "it cannot be told whether a server runs"
    ]


def test_without_perftest_it_says_what_to_install_or_do() -> None:
    assert refused(replace(idle("spark1"), sizes={})) == [f"no {PROGRAM}"]


def test_a_node_without_a_rail_is_refused() -> None:
    (problem,) = refusals({"spark1": idle("spark1")}, [])
    assert problem.seen == "no function of it shares a subnet with a neighbour's"


class Perftest:
    """Two programs that meet by port number: a server that waits, a client that does not."""

    def __init__(self, late: float = 0.0, fail: str = "", report: str = REPORT) -> None:
        self.late, self.fail, self.report = late, fail, report
        self.listening: dict[str, threading.Event] = {}
        self.lock = threading.Lock()
        self.tries = 0

    def run(self, node: str, command: NodeCommand, on_line: OnLine | None = None) -> Result:
        port = re.findall(r"--port (\d+)", str(command))[0]
        with self.lock:
            self.tries += 1
            done = threading.Event()
        if re.match(r"[0-9.]+$", command.argv[-1]) is None:
            time.sleep(self.late)
            with self.lock:
                self.listening[port] = done
            assert done.wait(20)
            return Result(0, self.report, "")
        with self.lock:
            server = self.listening.get(port)
        if server is None:
            return Result(1, "", f"Couldn't connect to {command.argv[-1]}:{port}\n")
        server.set()
        if port == self.fail:
            return Result(1, "", "Completion with error at client\nFailed status 12: wr_id 0\n")
        return Result(0, self.report, "")

    def copy(self, node: str, folder: Path, target: str, timeout: float) -> None:
        raise AssertionError("nothing is copied")

    def interrupt(self) -> None:
        raise AssertionError("nothing is interrupted")


def test_flows_run_at_once_and_a_client_waits_for_its_server() -> None:
    runner = Perftest(late=0.5)
    rates = run_flows(runner, planned(ring()))
    assert len(rates) == 8 and {one.gigabits for one in rates} == {196.12}
    assert runner.tries > 16, "clients tried again"


def test_R26_a_link_that_is_stuck_far_below_its_speed_is_named() -> None:
    assert slow([Rate("a - b", 196.1, 200.0), Rate("c - d", 9.1, 10.0), Rate("e", 3, 0)]) == []
    (problem,) = slow([Rate("spark1 x - spark2 y", 25.6, 200.0)])
    assert problem.seen == "25.6 Gb/s both ways over a link of 200 Gb/s"
    assert problem.wanted == "50 Gb/s or more" and "take their power away" in problem.fix


def test_a_flow_that_fails_is_told_with_both_commands() -> None:
    with pytest.raises(RunError) as caught:
        run_flows(Perftest(fail="18517"), planned(ring()))
    (problem,) = caught.value.problems
    assert problem.where == "spark1 rocep1s0f1 - spark4 rocep1s0f0"
    assert problem.seen == "ended with 1: Failed status 12: wr_id 0"
    assert problem.fix.count(PROGRAM) == 2


@pytest.mark.parametrize("report", ["odd", "4096 5000 0.00 96.1.2 2.9", f"1 2 3 {'1' * 5000}"])
def test_a_report_that_cannot_be_read_is_told(report: str) -> None:
    with pytest.raises(RunError) as caught:
        run_flows(Perftest(report=f"{report}\n"), planned(ring())[:1])
    assert caught.value.problems[0].seen == f"ended with 0: {report}"
