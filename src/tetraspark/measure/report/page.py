"""The page: one HTML file that needs no network, no script and no other file."""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from tetraspark.measure import about
from tetraspark.measure.report.anchors import anchors
from tetraspark.measure.report.compare import Comparison
from tetraspark.measure.report.foreign_text import clean
from tetraspark.measure.report.read import Source
from tetraspark.measure.report.scale import number
from tetraspark.measure.report.sections import TITLES, sections

HASH_SHOWN = 16
WHEN = "measured at"


def render(comparison: Comparison, at: str) -> str:
    """Return the page; `at` is when it was made."""
    import jinja2  # Here, or every command would load it when it starts.

    folder = files(__package__)
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        style=Markup(folder.joinpath("page.css").read_text(encoding="utf-8")),
        at=at,
        version=about.this_version(),
        comparison=comparison,
        compared=bool(comparison.against),
        subjects=tuple(_subjects(comparison)),
        sections=tuple(sections(comparison)),
        notes=[("run", one) for one in comparison.run.notes]
        + [("against", one) for one in comparison.other.notes],
        anchors=anchors() if comparison.hardware_class == "spark" else (),
        number=number,
        titles=TITLES,
    )


def _shown(value: Any) -> Any:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _subjects(comparison: Comparison) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (what, of the run, of the other, whether they differ) of what reports say."""
    run, other = _about(comparison.runs), _about(comparison.against)
    for name in dict.fromkeys([*run, *other]):
        mine, its = run.get(name, "not told"), other.get(name, "not told")
        yield name, mine, its, bool(comparison.against) and mine != its


def _about(sources: Iterable[Source]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for source in sources:
        said = source.about
        if said is None:
            continue
        told: Mapping[str, Any] = {
            "model": said.model,
            "hardware": said.hardware,
            "line": said.line or "none: a server at a URL",
            "site, SHA-256": (said.site_sha256 or "none")[:HASH_SHOWN],
            "tetraspark": said.tetraspark,
            "asked from": said.client,
            WHEN: said.at,
            **{f"engine: {name}": value for name, value in said.engine.items()},
        }
        for name, value in told.items():
            found.setdefault(name, []).append(str(value))
    told_once = {name: ", ".join(dict.fromkeys(values)) for name, values in found.items()}
    times = sorted(found.get(WHEN, ()))
    return told_once | ({WHEN: f"{times[0]} to {times[-1]}"} if len(times) > 1 else {})
