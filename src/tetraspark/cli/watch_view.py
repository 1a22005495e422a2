"""How an observation is shown to a person."""

import time

from rich.markup import escape
from rich.table import Table

from tetraspark.cli.live import LiveView
from tetraspark.cli.output import out, print_problems, shown
from tetraspark.cli.status import COLOURS
from tetraspark.errors import Problem
from tetraspark.fleet.meminfo import GIB
from tetraspark.watch.board import Board
from tetraspark.watch.observation import EngineSample, Observation, RankSample


class WatchView(LiveView):
    """The newest observation of a board, as it changes."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def table(self) -> Table:
        """Return the ranks and the rest of the newest observation."""
        found = self._board.latest()
        return Table("looking") if found is None else observation_table(found)


def observation_table(found: Observation) -> Table:
    """Return a table of the ranks, with the state above and what was found beside it below."""
    table = _ranks(found)
    table.title_justify, table.title_style = "left", ""
    seconds = max(0.0, time.time() - found.since)
    table.title = f"{_state(found)} for {seconds:.0f} s - {escape(shown(found.reason))}\n"
    table.title += f"{engine_line(found.engine)}; {escape(_canary(found))}"
    for one in found.findings:
        text = f"{one.id} {one.where}: {one.observed}; fix: {one.fix}"
        table.add_row("", "[yellow]found[/]", escape(shown(text)))
    return table


def print_observation(found: Observation) -> None:
    """Print one look for a person: the state, the ranks, then what was found beside it."""
    out.print(f"{_state(found)} - {escape(shown(found.reason))}")
    if found.run is None:
        return
    out.print(_ranks(found))
    out.print(f"engine: {engine_line(found.engine)}", markup=False)
    out.print(_canary(found), markup=False)
    problems = (
        Problem(f"{one.where} {one.id}", one.observed, one.wanted, one.fix)
        for one in found.findings
    )
    print_problems(problems, "found", "yellow")


def _state(found: Observation) -> str:
    return f"line {found.line}: [bold {COLOURS[found.state]}]{found.state}[/]"


def _ranks(found: Observation) -> Table:
    sizes = ("MemFree", "available", "cache")
    table = Table("rank", "node", "state", "collectives", "lanes", *sizes, box=None)
    for rank in found.ranks:
        table.add_row(*map(escape, _row(rank)))
    return table


def engine_line(engine: EngineSample) -> str:
    """Say what the engine counts, in one line."""
    parts = [
        f"{engine.running if engine.running is not None else '?'} running",
        f"{engine.waiting if engine.waiting is not None else '?'} waiting",
    ]
    if engine.tokens_per_second is not None:
        parts.append(f"{engine.tokens_per_second:.1f} tok/s")
    if engine.kv_used is not None:
        parts.append(f"pool {engine.kv_used:.0%}")
    if engine.swa_used is not None:
        parts.append(f"swa {engine.swa_used:.0%}")
    return ", ".join(parts)


def _canary(found: Observation) -> str:
    canary = found.canary
    if canary is None:
        return "no canary asked"
    told = f"answered in {canary.seconds:.2f} s" if canary.ok and canary.seconds else canary.reason
    return f"canary: {shown(told)}"


def _row(rank: RankSample) -> list[str]:
    state = f"{rank.state}: {rank.detail}" if rank.detail else rank.state
    down = sum(lane.state != "up" for lane in rank.lanes)
    lanes = f"{len(rank.lanes)}, {down} down" if down else str(len(rank.lanes))
    return [
        str(rank.rank),
        rank.node,
        shown(state),
        "engine's own" if rank.operations is None else f"{rank.operations} done",
        lanes,
        *(_gib(size) for size in (rank.memory_free, rank.memory_available, rank.page_cache)),
    ]


def _gib(size: int | None) -> str:
    return "?" if size is None else f"{size / GIB:.1f} GiB"
