"""What `tetraspark tune` has stored for a line, or why there is nothing for it."""

from dataclasses import dataclass, replace
from typing import Literal

from tetraspark.collectives.build import SOURCE
from tetraspark.collectives.cuda_source import KERNELS, PROTOCOL
from tetraspark.collectives.routes import MAX_WORLD
from tetraspark.collectives.thresholds import ThresholdKey, build_of
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.hardware import cores, machine
from tetraspark.line.threshold_store import Stored, ThresholdStore
from tetraspark.site.collectives import TUNED, Collectives
from tetraspark.site.load import LoadedSite

TUNABLE = ("max_two_shot_bytes", "two_shot_from")


@dataclass(frozen=True)
class Tuned:
    """What is stored under the line's key; or a warning, where the site asks for what is not."""

    stored: Stored | None = None
    warning: Problem | None = None


NOT_TUNED = Tuned()


def section_of(loaded: LoadedSite) -> Collectives:
    """Return the line's collectives. Raises UsageError when its engine keeps its own."""
    section = loaded.site.collectives
    if section is None or section.transport == "off":
        seen = "collectives are off" if section else "no section [collectives]"
        where = loaded.origin("collectives.transport").where if section else str(loaded.path)
        wanted = "a line with collectives of ours"
        raise UsageError(Problem(where, seen, wanted, '[collectives] with transport = "shm"'))
    return section


def key_of(loaded: LoadedSite, device: Literal["cpu", "cuda"] = "cpu") -> ThresholdKey:
    """Return what the line's thresholds depend on. Raises UsageError as `section_of`, and
    for a number of nodes that no group can have.

    Shared memory has no packets, so no MTU. On GPUs the kernels move the data, not the proxy.
    """
    section = section_of(loaded)
    sources = (SOURCE,) if device == "cpu" else (PROTOCOL, KERNELS)
    words = f"{machine()}, {cores()} cores"
    build = build_of(words, *(source.read_bytes() for source in sources))
    transport = section.transport if device == "cpu" else f"{section.transport}-{device}"
    count = len(loaded.site.nodes)
    if not 2 <= count <= MAX_WORLD:
        where, wanted = str(loaded.path), f"2 to {MAX_WORLD}, for collectives of ours"
        seen = f"{count} node{'s' if count > 1 else ''}"
        raise UsageError(Problem(where, seen, wanted, 'transport = "off"'))
    return ThresholdKey(count, section.lanes, 0, transport, build)


def tuned(loaded: LoadedSite, store: ThresholdStore | None = None) -> Tuned:
    """Return what is stored for a site that asks for it. Raises UsageError for a damaged file."""
    section = loaded.site.collectives
    keys = [key for key in TUNABLE if section and getattr(section, key) == TUNED]
    if section is None or section.transport == "off" or not keys:
        return NOT_TUNED
    store, key = store or ThresholdStore(), key_of(loaded)
    stored = store.read(key)
    return Tuned(stored, None if stored else _warning(loaded, keys, key, store))


def absence(loaded: LoadedSite, key: ThresholdKey, where: str, store: ThresholdStore) -> Problem:
    """Return the problem that nothing is stored for a key, with what is stored for others."""
    others = ["; ".join(key.differences(one.thresholds.key)) for one in store.all()]
    seen = "no thresholds are stored"
    if others:
        seen = f"thresholds are stored for others only: {' | '.join(others)}"
    return Problem(where, seen, f"those of {key.name}", f"tetraspark tune --site {loaded.path}")


def _warning(
    loaded: LoadedSite, keys: list[str], key: ThresholdKey, store: ThresholdStore
) -> Problem:
    found = absence(loaded, key, loaded.origin(f"collectives.{keys[0]}").where, store)
    words = " and ".join(f"`{one}`" for one in keys)
    return replace(found, seen=f'{words} "{TUNED}" counts as absent: {found.seen}')
