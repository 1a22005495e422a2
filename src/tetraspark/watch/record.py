"""What a watch keeps on disk beside a line: what it last said, and what it has done.

What was done limits what may be done: it holds across restarts of the watch, and is put aside only
when somebody serves the line by hand.
"""

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from tetraspark.bundle.source import Missing
from tetraspark.errors import Problem, RunError
from tetraspark.fleet.record_file import Shape, read_record, set_aside
from tetraspark.fleet.run_files import write_atomically
from tetraspark.site.watch import OnWedge
from tetraspark.watch.observation import Observation

KEPT_ACTS = 50
RESTARTS = ("restart-once", "restart-without-transport")
AT_WORK = "tetraspark watch --once looks anew; tetraspark serve begins a watch of its own"
CHANGED = (
    "the site file is not what this run was served from, so a restart would serve another line: "
    "`tetraspark serve --replace` serves the file, `tetraspark rollback` what was good before"
)
STARTED_BY_WATCH = "TETRASPARK_STARTED_BY_WATCH"
"""Variable of a `serve` that a watch has begun."""


@dataclass(frozen=True)
class Act:
    """One wedge and what was done about it: `at` in Unix seconds, the evidence in `folder`.

    `places` has, for each rank, where its scheduler stood; `unread` is a key file that could not
    be read, so that its key was not taken out of the evidence.
    """

    at: float
    run: str
    reason: str
    rank: int | None
    done: OnWedge
    why: str
    folder: str
    places: dict[str, str]
    unread: Missing | None = None


@dataclass(frozen=True)
class Page:
    """Where a watch serves its page, or why it serves none; neither, where none was asked for."""

    url: str | None = None
    problem: Problem | None = None


class Said(Shape):
    """watch.json, as far as it is read back."""

    at: float
    run: str | None
    state: str
    reason: str
    rank: int | None
    since: float
    findings: list[dict[str, Any]]


class StoredProblem(Shape):
    """A `Problem`, as it was written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    where: str
    seen: str
    wanted: str
    fix: str = ""


class StoredPage(Shape):
    """watch-page.json: `Page`."""

    url: str | None = None
    problem: StoredProblem | None = None


class StoredAct(Shape):
    """One of the acts of watch-acts.json: `Act`."""

    run: str
    reason: str
    done: str
    why: str
    folder: str


class StoredActs(Shape):
    """watch-acts.json: acts that count, and those that were put aside."""

    acts: list[StoredAct]
    earlier: list[StoredAct] = Field(default_factory=list)


class Record:
    """The files of a line's watch, in the line's folder."""

    def __init__(self, root: Path) -> None:
        self._said = root / "watch.json"
        self._acts = root / "watch-acts.json"
        self._page = root / "watch-page.json"

    def said(self) -> dict[str, Any] | None:
        """Return what a watch last said, or None. Raises RunError where that is damaged."""
        wanted = "what a watch last said; one that is at work writes it anew"
        found: dict[str, Any] | None = read_record(self._said, Said, wanted, AT_WORK)
        return found

    def say(self, observation: Observation, pid: int) -> None:
        """Keep what the watch `pid` says now. Raises OSError."""
        # The course of the rate is for those who follow it, not for a file renewed at each look.
        told = {name: value for name, value in observation.as_dict().items() if name != "history"}
        write_atomically(self._said, {"pid": pid, **told})

    def show(self, page: Page) -> None:
        """Keep where the watch that is at work serves its page. Raises OSError."""
        write_atomically(self._page, asdict(page))

    def page(self) -> Page | None:
        """Return where the last watch served its page; None before it has come that far.

        Raises RunError where that is damaged.
        """
        wanted = "where the watch serves its page, as it wrote that"
        found = read_record(self._page, StoredPage, wanted, AT_WORK)
        if found is None:
            return None
        problem = found.get("problem")
        return Page(found.get("url"), None if problem is None else Problem(**problem))

    def hide_page(self) -> None:
        """Forget where a watch that has ended served its page."""
        self._page.unlink(missing_ok=True)

    def acts(self) -> list[dict[str, Any]]:
        """Return what watches have done since the line was last served by hand, oldest first.

        Raises RunError where that is damaged: then nobody knows what may be done.
        """
        return list(self._kept().get("acts", ()))

    def add(self, act: Act) -> None:
        """Record an act, before it is done.

        Raises OSError, and RunError for a damaged record: then it must not be done.
        """
        found = self._kept()
        acts = [*found.get("acts", ()), asdict(act)]
        write_atomically(self._acts, {**found, "acts": acts})

    def served_by_hand(self) -> Problem | None:
        """Put all acts aside: from here on, a restart is allowed again.

        A damaged record is put aside as it is; returns what is wrong with it, and where it is.
        """
        try:
            found = self._kept()
        except RunError as error:
            (problem,) = error.problems
            seen = f"{problem.seen}; put aside as {set_aside(self._acts).name}"
            return replace(problem, seen=seen, fix="")
        if found.get("acts"):
            earlier = [*found.get("earlier", ()), *found["acts"]]
            write_atomically(self._acts, {"acts": [], "earlier": earlier[-KEPT_ACTS:]})
        return None

    def _kept(self) -> dict[str, Any]:
        wanted = "what watches of this line have done, as they wrote it"
        name = shlex.quote(str(self._acts))
        fix = f"tetraspark serve --replace puts it aside, as does: mv {name} {name}.damaged"
        found: dict[str, Any] | None = read_record(self._acts, StoredActs, wanted, fix)
        return found or {}


def choose(wanted: OnWedge, acts: list[dict[str, Any]], changed: bool) -> tuple[OnWedge, str]:
    """Return what may be done about a wedge, and why. Pure.

    A second restart may not, nor one that would serve a site file that was `changed`.
    """
    if wanted in RESTARTS and any(act["done"] in RESTARTS for act in acts):
        why = (
            "restarted before, and failed again: it is left as it is; `tetraspark serve --replace`"
        )
        return "nothing", why
    if wanted in RESTARTS and changed:
        return "nothing", CHANGED
    return wanted, f'on_wedge = "{wanted}"'
