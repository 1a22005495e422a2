"""Examine the nodes of a line: one read-only probe a node, all at once, then pure judges."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

from tetraspark.doctor import history
from tetraspark.doctor.api_key import key_problem
from tetraspark.doctor.baseline import NodeState, read_baseline
from tetraspark.doctor.burn import Burn, burn_command, read_burn
from tetraspark.doctor.burn_check import refusal
from tetraspark.doctor.check import Check
from tetraspark.doctor.choice import chosen, reads_fabric
from tetraspark.doctor.definition import Definition
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.reach import unreached
from tetraspark.doctor.report import Report
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.function import NodeFabric
from tetraspark.fabric.inventory import read_fabric
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.inside.look import look
from tetraspark.fleet.login import logins
from tetraspark.fleet.probe import probe_all
from tetraspark.fleet.this_machine import HERE
from tetraspark.site.load import LoadedSite


def examine(
    loaded: LoadedSite,
    runner: NodeRunner | None,
    only: Collection[str] = (),
    nodes: Collection[str] = (),
    burn: bool = False,
) -> Report:
    """Make the checks of a line; nothing on any node is changed.

    `only` are IDs of checks or their beginnings, `nodes` names of nodes; without them all are
    looked at. A local line needs no runner. `burn` loads each GPU for some seconds in a container
    of its own, unless something uses one. Raises UsageError for names that there are not.
    """
    begun = time.monotonic()
    definitions = chosen(only, loaded.site.kind, burn)
    ranks = chosen_ranks(loaded, nodes)
    found = _look(loaded, runner, request(loaded, definitions, ranks))
    views = _views(loaded, definitions, ranks, found)
    if burn and runner is not None:
        views = _burned(loaded, runner, views)
    return _report(loaded, definitions, found, views, begun)


def start_wanted(loaded: LoadedSite) -> dict[str, Wanted]:
    """Return what the checks of a start read on each node."""
    return request(loaded, chosen((), loaded.site.kind), chosen_ranks(loaded))


def judge(
    loaded: LoadedSite, found: Mapping[str, Facts | RunError], replacing: bool = False
) -> Report:
    """Make the checks of a start from what probes of `start_wanted` found.

    `replacing` is for a line that runs and is about to make way: what it has itself is not judged,
    and no states are told.
    """
    begun = time.monotonic()
    definitions = chosen((), loaded.site.kind, replacing=replacing)
    views = _views(loaded, definitions, chosen_ranks(loaded), found)
    report = _report(loaded, definitions, found, views, begun)
    return replace(report, states={}) if replacing else report


def _report(
    loaded: LoadedSite,
    definitions: Sequence[Definition],
    found: Mapping[str, Facts | RunError],
    views: Mapping[str, NodeView],
    begun: float,
) -> Report:
    checks = [
        one
        for node, error in found.items()
        if isinstance(error, RunError)
        for one in unreached(node, error)
    ]
    checks += _judged(definitions, views)
    order = {one.id: place for place, one in enumerate(definitions)}
    checks.sort(key=lambda one: order[one.id])
    seconds = time.monotonic() - begun
    return Report(loaded.site.name, tuple(found), tuple(checks), seconds, _states(views))


def _states(views: Mapping[str, NodeView]) -> dict[str, NodeState]:
    """Return the states of the nodes of which enough was looked at."""
    found = {node: history.state(view) for node, view in views.items()}
    return {node: state for node, state in found.items() if state.kernel and state.available}


def chosen_ranks(loaded: LoadedSite, nodes: Collection[str] = ()) -> dict[str, int]:
    """Return the ranks to look at by the name of their node. Raises UsageError for other names."""
    site = loaded.site
    known = {node.name: rank for rank, node in enumerate(site.nodes)}
    if site.kind == "local":
        known = {HERE: 0}
    unknown = [name for name in nodes if name not in known]
    if unknown:
        wanted, fix = f"one of {', '.join(known)}", f"correct it, or [[nodes]] in {loaded.path}"
        raise UsageError(*(Problem("--node", repr(name), wanted, fix) for name in unknown))
    return {name: rank for name, rank in known.items() if not nodes or name in nodes}


def request(
    loaded: LoadedSite, definitions: Sequence[Definition], ranks: Mapping[str, int]
) -> dict[str, Wanted]:
    """Return what a probe reads on each node: what the checks want, added up."""
    asked = {}
    for node, rank in ranks.items():
        wanted = Wanted()
        for one in definitions:
            wanted = wanted | one.wanted(loaded, rank)
        asked[node] = wanted
    return asked


def _look(
    loaded: LoadedSite, runner: NodeRunner | None, asked: Mapping[str, Wanted]
) -> Mapping[str, Facts | RunError]:
    if loaded.site.kind == "local":
        return {node: Facts.of(node, look(asdict(wanted))) for node, wanted in asked.items()}
    if runner is None:
        raise ValueError("the nodes of a fleet need a runner")
    return probe_all(runner, asked)


def _views(
    loaded: LoadedSite,
    definitions: Sequence[Definition],
    ranks: Mapping[str, int],
    found: Mapping[str, Facts | RunError],
) -> dict[str, NodeView]:
    """Return the nodes that could be looked at."""
    known = {} if loaded.site.kind == "local" else {one.node: one for one in logins(loaded)}
    good = read_baseline(loaded.site.name)
    key = key_problem(loaded)
    fabric = reads_fabric(definitions)
    return {
        node: NodeView(
            loaded=loaded,
            rank=ranks[node],
            login=known.get(node),
            facts=facts,
            fabric=read_fabric(facts) if fabric else NodeFabric(node, ()),
            good=good.get(node),
            key=key,
        )
        for node, facts in found.items()
        if isinstance(facts, Facts)
    }


def _judged(definitions: Sequence[Definition], views: Mapping[str, NodeView]) -> Iterator[Check]:
    for one in definitions:
        if one.node is not None:
            for node, view in views.items():
                yield from (finding.as_check(one.id, node) for finding in one.node(view))
        elif one.fleet is not None and views:
            yield from (finding.as_check(one.id) for finding in one.fleet(views))


def _burned(
    loaded: LoadedSite, runner: NodeRunner, views: Mapping[str, NodeView]
) -> dict[str, NodeView]:
    """Load all GPUs at once, or none of them where one is in use."""
    image = loaded.site.image
    assert image is not None, "the schema asks it of a fleet"
    busy = {node: why for node, view in views.items() if (why := refusal(view))}
    if busy:
        told = "; ".join(f"{node}: {why}" for node, why in busy.items())
        return {node: replace(view, burn=f"refused, {told}") for node, view in views.items()}
    command = burn_command(image, loaded.site.name)

    def one(node: str) -> Burn | str:
        try:
            return read_burn(runner.run(node, command))
        except RunError as error:
            return error.problems[0].seen

    with ThreadPoolExecutor(max(len(views), 1)) as pool:
        burns = dict(zip(views, pool.map(one, views), strict=True))
    return {node: replace(view, burn=burns[node]) for node, view in views.items()}
