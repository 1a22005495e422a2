"""What a watch keeps on disk beside a line: what it last said, and what it has done.

What was done limits what may be done: it holds across restarts of the watch, and is put aside only
when somebody serves the line by hand.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tetraspark.bundle.source import Missing
from tetraspark.errors import Problem
from tetraspark.fleet.run_files import write_atomically
from tetraspark.site.watch import OnWedge
from tetraspark.watch.observation import Observation

KEPT_ACTS = 50
RESTARTS = ("restart-once", "restart-without-transport")
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


class Record:
    """The files of a line's watch, in the line's folder."""

    def __init__(self, root: Path) -> None:
        self._said = root / "watch.json"
        self._acts = root / "watch-acts.json"
        self._page = root / "watch-page.json"

    def said(self) -> dict[str, Any] | None:
        """Return what a watch last said, or None."""
        return _read(self._said)

    def say(self, observation: Observation, pid: int) -> None:
        """Keep what the watch `pid` says now. Raises OSError."""
        # The course of the rate is for those who follow it, not for a file renewed at each look.
        told = {name: value for name, value in observation.as_dict().items() if name != "history"}
        write_atomically(self._said, {"pid": pid, **told})

    def show(self, page: Page) -> None:
        """Keep where the watch that is at work serves its page. Raises OSError."""
        write_atomically(self._page, asdict(page))

    def page(self) -> Page | None:
        """Return where the last watch served its page; None before it has come that far."""
        found = _read(self._page) or {}
        try:
            problem = found["problem"]
            return Page(found["url"], None if problem is None else Problem(**problem))
        except (KeyError, TypeError):
            return None

    def hide_page(self) -> None:
        """Forget where a watch that has ended served its page."""
        self._page.unlink(missing_ok=True)

    def acts(self) -> list[dict[str, Any]]:
        """Return what watches have done since the line was last served by hand, oldest first."""
        return list((_read(self._acts) or {}).get("acts", ()))

    def add(self, act: Act) -> None:
        """Record an act, before it is done. Raises OSError: then it must not be done."""
        found = _read(self._acts) or {}
        acts = [*found.get("acts", ()), asdict(act)]
        write_atomically(self._acts, {**found, "acts": acts})

    def served_by_hand(self) -> None:
        """Put all acts aside: from here on, a restart is allowed again."""
        found = _read(self._acts)
        if found and found.get("acts"):
            earlier = [*found.get("earlier", ()), *found["acts"]]
            write_atomically(self._acts, {"acts": [], "earlier": earlier[-KEPT_ACTS:]})


def choose(wanted: OnWedge, acts: list[dict[str, Any]], changed: bool) -> tuple[OnWedge, str]:
    """Return what may be done about a wedge, and why. Pure.

    A second restart may not, nor one that would serve a site file that was `changed`.
    """
    if wanted in RESTARTS and any(act["done"] in RESTARTS for act in acts):
        why = (
            "restarted before, and wedged again: it is left as it is; `tetraspark serve --replace`"
        )
        return "nothing", why
    if wanted in RESTARTS and changed:
        return "nothing", CHANGED
    return wanted, f'on_wedge = "{wanted}"'


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
