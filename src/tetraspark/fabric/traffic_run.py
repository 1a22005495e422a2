"""Run the flows of a traffic plan, all at once, and read what each reports."""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.survey import fabrics, look
from tetraspark.fabric.traffic import WANTED, Flow, flows, refusals
from tetraspark.fleet.command import NodeRunner, Result
from tetraspark.fleet.facts import Facts
from tetraspark.fleet.probe import probe_all

FUNCTION_GIGABITS = 100.0
"""What the four PCIe 5 lanes of one function of a Spark's NIC carry, about, in Gb/s."""
LISTEN_SECONDS = 10.0
"""How long a client tries until its server listens."""
REFUSED = re.compile(r"(?i)couldn't connect|connection refused|unable to connect")
RATE = re.compile(
    r"(?m)^\s*[0-9]+\s+[0-9]+\s+[0-9.]+\s+(?P<mean>[0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9.])"
)


@dataclass(frozen=True)
class Rate:
    """What one flow carried, both ways together, and the speed of its link, each in Gb/s."""

    rail: str
    gigabits: float
    speed: float

    @property
    def expected(self) -> float:
        """The least that a sound link carries: a quarter each way of what one function can."""
        return min(self.speed, FUNCTION_GIGABITS) / 2


def plan_traffic(
    runner: NodeRunner, devices: Mapping[str, tuple[str, ...]], seconds: int
) -> tuple[Flow, ...]:
    """Return the flows for the RDMA devices of a site's nodes, given in rank order.

    Raises RunError with every reason why no traffic must be started.
    """
    nodes = tuple(devices)
    seen = look(runner, nodes)
    asked = probe_all(runner, {node: WANTED for node in nodes if isinstance(seen[node], Facts)})
    lost = [one.problems[0] for one in (*seen.values(), *asked.values())
            if isinstance(one, RunError)]  # fmt: skip
    if lost:
        raise RunError(*lost)
    planned = flows(nodes, fabrics(seen), devices, seconds)
    facts = {node: one for node, one in asked.items() if isinstance(one, Facts)}
    if refused := refusals(facts, planned):
        raise RunError(*refused)
    return planned


def run_flows(runner: NodeRunner, planned: Sequence[Flow]) -> list[Rate]:
    """Run all flows at once. Raises RunError with a problem for every flow that failed."""
    with ThreadPoolExecutor(2 * max(len(planned), 1)) as pool:
        ends = list(pool.map(lambda flow: _run(runner, pool, flow), planned))
    problems = [one for one in ends if isinstance(one, Problem)]
    if problems:
        raise RunError(*problems)
    return [one for one in ends if isinstance(one, Rate)]


def slow(rates: Sequence[Rate]) -> list[Problem]:
    """Return the rails that carried far less than their link says: a NIC that came up degraded."""
    fix = (
        "tetraspark fabric show: PCIe and speed; where these are right, shut the nodes down, "
        "take their power away for a minute, and start again"
    )
    return [
        Problem(
            one.rail,
            f"{one.gigabits:.1f} Gb/s both ways over a link of {one.speed:.0f} Gb/s",
            f"{one.expected:.0f} Gb/s or more",
            fix,
        )
        for one in rates
        if one.gigabits < one.expected
    ]


def _run(runner: NodeRunner, pool: ThreadPoolExecutor, flow: Flow) -> Rate | Problem:
    server = pool.submit(runner.run, flow.server, flow.listen)
    ended = threading.Event()
    server.add_done_callback(lambda _: ended.set())
    try:
        client = _connect(runner, flow, ended)
        served = server.result()
    except RunError as error:
        return error.problems[0]
    gigabits = read_gigabits(client.stdout)
    if client.rc == 0 and gigabits is not None:
        return Rate(flow.rail, gigabits, flow.speed)
    bad = client if client.rc or served.rc == 0 else served
    seen = (bad.stderr.strip() or bad.stdout.strip() or "no report").splitlines()[-1]
    fix = f"on {flow.server}: {flow.listen}; on {flow.client}: {flow.connect}"
    return Problem(flow.rail, f"ended with {bad.rc}: {seen}", "a rate", fix)


def read_gigabits(text: str) -> float | None:
    """Return the mean rate that a client reports, in Gb/s; None without one. Pure."""
    match = RATE.search(text)
    return float(match["mean"]) if match else None


def _connect(runner: NodeRunner, flow: Flow, ended: threading.Event) -> Result:
    """Start the client, again while its server does not listen yet."""
    deadline = time.monotonic() + LISTEN_SECONDS
    while True:
        done = runner.run(flow.client, flow.connect)
        refused = done.rc != 0 and REFUSED.search(done.stderr + done.stdout)
        if not refused or ended.is_set() or time.monotonic() > deadline:
            return done
        ended.wait(0.3)
