"""The variables by which ranks learn of their collectives, each with where its value came from."""

from dataclasses import dataclass, replace

from tetraspark.collectives.flags import UNIT
from tetraspark.engine.collectives_env import (
    LANES,
    LIMITS,
    MAX_TWO_SHOT,
    NEVER,
    OPTIONS,
    TRANSPORT,
    TWO_SHOT_FROM,
    WIRING,
)
from tetraspark.line.lanes import Lanes
from tetraspark.line.plan import Setting
from tetraspark.line.settings import value_of
from tetraspark.line.tuned import Tuned
from tetraspark.site.collectives import TUNED, Collectives
from tetraspark.site.load import LoadedSite
from tetraspark.site.origin import Origin


@dataclass(frozen=True)
class _Size:
    """Bytes as the site or the store has them; `absent` where neither says anything."""

    bytes: int | None
    origin: Origin
    absent: bool = False


def without_transport(loaded: LoadedSite) -> LoadedSite:
    """Return the site with all collectives left to the engine, whatever its file says."""
    return replace(loaded, site=loaded.site.model_copy(update={"collectives": None}))


def collective_settings(
    loaded: LoadedSite, found: Tuned, lanes: Lanes | None = None
) -> list[Setting]:
    """Return the transport and its limits, all of them; nothing where the engine keeps its own.

    `lanes` are those of a site with verbs.
    """
    section = loaded.site.collectives
    if section is None or section.transport == "off":
        return []
    names = [(TRANSPORT, "transport"), *((name, key) for name, key, _ in LIMITS)]
    return [
        *(
            Setting("env", name, str(getattr(section, key)), loaded.origin(f"collectives.{key}"))
            for name, key in names
            if not (lanes and key == "lanes")
        ),
        *(_rdma(loaded, lanes) if lanes else ()),
        *_two_shot(loaded, section, found),
    ]


def _rdma(loaded: LoadedSite, lanes: Lanes) -> list[Setting]:
    """The wiring, and what the transport is told of its lanes."""
    found = [
        Setting("env", LANES, str(lanes.wiring.lanes), lanes.origin),
        Setting("env", WIRING, lanes.wiring.to_json(), lanes.origin),
    ]
    for name, key, _ in OPTIONS:
        value = value_of(loaded, key)
        found.append(Setting("env", name, str(value or 0), loaded.origin(key)))
    return found


def _two_shot(loaded: LoadedSite, section: Collectives, found: Tuned) -> list[Setting]:
    """Return how far two-shot goes and from where on: 0 and never where it goes nowhere."""
    largest = _size(loaded, section, "max_two_shot_bytes", found)
    start = _size(loaded, section, "two_shot_from", found)
    if start.absent:
        above = Origin("derived", "above collectives.max_reduce_bytes")
        start = _Size(section.max_reduce_bytes + UNIT, above)
    if start.bytes is None or largest.bytes is None or start.bytes > largest.bytes:
        why = largest if largest.bytes is None else start
        return _settings(_Size(0, why.origin), _Size(None, why.origin))
    return _settings(largest, start)


def _settings(largest: _Size, start: _Size) -> list[Setting]:
    begins = NEVER if start.bytes is None else str(start.bytes)
    return [
        Setting("env", MAX_TWO_SHOT, str(largest.bytes), largest.origin),
        Setting("env", TWO_SHOT_FROM, begins, start.origin),
    ]


def _size(loaded: LoadedSite, section: Collectives, key: str, found: Tuned) -> _Size:
    value, origin = getattr(section, key), loaded.origin(f"collectives.{key}")
    if value != TUNED:
        return _Size(value, origin, absent=value is None)
    if found.stored is None:
        return _Size(None, Origin("derived", f"{origin.where}: tuned, nothing is stored"), True)
    measured = found.stored.thresholds
    size = measured.two_shot_from if key == "two_shot_from" else measured.reduce_limit
    nowhere = ", faster nowhere" if size is None else ""
    return _Size(size, Origin("derived", f"{origin.where}: tuned{nowhere}, {found.stored.path}"))
