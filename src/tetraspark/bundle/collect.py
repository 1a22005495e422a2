"""Everything that a bundle holds, gathered: it reads, and changes nothing anywhere."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tetraspark.bundle.containers import container_sources
from tetraspark.bundle.line_sources import receipts, run_sources, site_source
from tetraspark.bundle.node_sources import journals, node_sources, wanted
from tetraspark.bundle.power import power_checks
from tetraspark.bundle.source import Missing, Source
from tetraspark.doctor.check import Check
from tetraspark.errors import RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.probe import probe
from tetraspark.line.run import Run
from tetraspark.site.load import LoadedSite

HERE = "this-machine"
"""Name of this machine in the bundle of a local line, all of whose ranks are on it."""


def nodes_of(loaded: LoadedSite) -> tuple[str, ...]:
    """Return the names under which a bundle has the line's machines, in rank order."""
    site = loaded.site
    return (HERE,) if site.kind == "local" else tuple(node.name for node in site.nodes)


@dataclass(frozen=True)
class Gathered:
    """Texts as they were found, what could not be had, and what the nodes' journals show."""

    sources: tuple[Source, ...]
    missing: tuple[Missing, ...]
    findings: tuple[Check, ...]


def gather(
    loaded: LoadedSite,
    run: Run | None,
    runner: NodeRunner,
    nodes: Sequence[str],
    status: Callable[[], str],
) -> Gathered:
    """Gather a bundle's texts; `status` gives those of `tetraspark status --json`.

    A node that cannot be reached is missing, with the reason, and holds nothing up.
    """
    here, absent = run_sources(run)
    parts = [Gathered((site_source(loaded), *here), tuple(absent), ())]
    with ThreadPoolExecutor(len(nodes) + 1) as pool:
        try:
            told = pool.submit(status)
            parts += pool.map(lambda node: _node(loaded.site.name, runner, node), nodes)
            parts.append(Gathered((Source("line/status.json", told.result()),), (), ()))
        except BaseException:
            runner.interrupt()
            raise
    sources = [source for part in parts for source in part.sources]
    return Gathered(
        sources=(*sources, receipts(sources)),
        missing=tuple(one for part in parts for one in part.missing),
        findings=tuple(check for part in parts for check in part.findings),
    )


def _node(line: str, runner: NodeRunner, node: str) -> Gathered:
    try:
        facts = probe(runner, node, wanted(line))
    except RunError as error:
        return Gathered((), (Missing(f"nodes/{node}", str(error)),), ())
    sources, missing = node_sources(facts)
    more, absent = container_sources(runner, facts)
    findings = tuple(power_checks(journals(facts)))
    return Gathered((*sources, *more), (*missing, *absent), findings)
