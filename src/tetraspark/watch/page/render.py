"""The page and its parts as HTML: one file, closed to what it shows, complete without a script."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from tetraspark.measure.report.foreign_text import clean
from tetraspark.watch.http_health import Health
from tetraspark.watch.observation import Observation
from tetraspark.watch.page import quantity
from tetraspark.watch.page.icon import MARKS, icon_of
from tetraspark.watch.page.lane_rates import Lane
from tetraspark.watch.page.lanes import lane_ends, lane_pairs
from tetraspark.watch.page.picture import picture
from tetraspark.watch.page.sparkline import sparkline

if TYPE_CHECKING:
    import jinja2

PARTS = ("state", "engine", "findings", "fleet", "about")
"""Templates, and the ids of the elements that hold them, from the top of the page."""
FILTERS = ("amount", "clock", "count", "duration", "rate", "share", "size", "told")


@dataclass(frozen=True)
class Shown:
    """What a page is made of; `rates` are bytes a second by lane."""

    seen: Observation | None
    health: Health
    rates: dict[Lane, float]

    @property
    def title(self) -> str:
        """What the browser's tab says."""
        if self.seen is None:
            return "not seen yet · tetraspark"
        stale = "last known: " if self.health.stale else ""
        return clean(f"{stale}{self.seen.state} · {self.seen.line}")

    @property
    def icon(self) -> str:
        """The tab's icon as a data: URL; its shape tells the state."""
        state = "" if self.seen is None or self.health.stale else self.seen.state
        return "data:image/svg+xml," + quote(icon_of(state))


def render_page(shown: Shown) -> str:
    """Return the whole page."""
    template = _environment().get_template("page.html.j2")
    return template.render(
        parts={name: Markup(part) for name, part in render_parts(shown).items()},
        style=Markup(_file("page.css")),
        script=Markup(_file("refresh.js")),
        policy=policy(),
        shown=shown,
    )


def render_parts(shown: Shown) -> dict[str, str]:
    """Return what may change, by the id of the element that holds it."""
    seen = shown.seen
    ends = lane_ends(seen, shown.rates) if seen else ()
    pairs = lane_pairs(ends)
    values: dict[str, Any] = {
        "shown": shown,
        "seen": seen,
        "health": shown.health,
        "ends": ends,
        "down": [one for one in pairs if not one.up],
        "picture": picture(seen.ranks, pairs) if seen else None,
        "spark": sparkline(seen.history) if seen else None,
        "marks": MARKS,
    }
    return {name: _environment().get_template(f"{name}.html.j2").render(values) for name in PARTS}


def policy() -> str:
    """Return the Content-Security-Policy: this page's own style and script, its server, no more."""
    return (
        f"default-src 'none'; style-src '{_digest('page.css')}'; "
        f"script-src '{_digest('refresh.js')}'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(name: str) -> str:
    found = hashlib.sha256(_file(name).encode()).digest()
    return "sha256-" + base64.b64encode(found).decode()


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> "jinja2.Environment":
    import jinja2  # Here, or every command would load it when it starts.

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({name: getattr(quantity, name) for name in FILTERS})
    return environment


def _finalize(value: Any) -> Any:
    """Take what would move or hide other text out of every text, and what no UTF-8 can hold."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return clean(value.encode(errors="replace").decode())
