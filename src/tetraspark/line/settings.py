"""Engine flags that follow from the site, each with its origin; the same for every kind."""

from collections.abc import Iterable
from functools import reduce
from typing import Any, Literal

from tetraspark.errors import Problem, UsageError
from tetraspark.line.plan import Setting
from tetraspark.site.load import LoadedSite
from tetraspark.site.origin import Origin

# Flag of sglang 0.5.23 -> the site key it is rendered from, when the site or a default sets it.
FLAGS = (
    ("--served-model-name", "model.served_name"),
    ("--tp-size", "engine.tp"),
    ("--ep-size", "engine.ep"),
    ("--context-length", "engine.context_length"),
    ("--chunked-prefill-size", "engine.chunked_prefill_size"),
    ("--max-running-requests", "engine.max_running_requests"),
    ("--max-total-tokens", "engine.kv_tokens"),
    ("--mem-fraction-static", "engine.mem_fraction"),
    ("--watchdog-timeout", "engine.watchdog_seconds"),
    ("--host", "api.host"),
)

SPECULATIVE_FLAGS = (
    ("--speculative-algorithm", "speculative.algorithm"),
    ("--speculative-dspark-block-size", "speculative.block_size"),
    ("--speculative-dspark-sps-table-path", "speculative.sps_table"),
    ("--speculative-dspark-confidence-sts-path", "speculative.sts_table"),
)
KEYS = dict((*FLAGS, *SPECULATIVE_FLAGS))
"""Flag -> site key."""


def value_of(loaded: LoadedSite, key: str) -> Any:
    """Return the value of a dotted key of the site; None when a section on the way is absent."""
    site: Any = loaded.site
    return reduce(lambda section, name: getattr(section, name, None), key.split("."), site)


def from_keys(loaded: LoadedSite, flags: Iterable[tuple[str, str]] = FLAGS) -> list[Setting]:
    """Return a setting for each flag whose key has a value."""
    found = ((flag, key, value_of(loaded, key)) for flag, key in flags)
    return [
        Setting("flag", flag, str(value), loaded.origin(key))
        for flag, key, value in found
        if value is not None
    ]


def extra(loaded: LoadedSite) -> list[Setting]:
    """Return the site's own words: `engine.extra_args`, then `[env]`."""
    words = [
        Setting("flag", word, None, loaded.origin("engine.extra_args"))
        for word in loaded.site.engine.extra_args
    ]
    variables = [
        Setting("env", name, value, loaded.origin(f"env.{name}"))
        for name, value in loaded.site.env.items()
    ]
    return words + variables


def derived(
    kind: Literal["flag", "env"], name: str, value: str | None, reason: str, rank: int | None
) -> Setting:
    """Return a setting that tetraspark computes, with the reason as its origin."""
    return Setting(kind, name, value, Origin("derived", reason), rank)


def told() -> list[Setting]:
    """Return the flags by which the engine tells what a measurement or a watch must know."""
    cached = "usage tells whether a prompt was computed or cached"
    return [
        derived("flag", "--enable-cache-report", None, cached, None),
        derived("flag", "--enable-metrics", None, "`watch` reads the engine's counters", None),
    ]


def refuse_conflicts(settings: Iterable[Setting]) -> None:
    """Raise UsageError where the site sets again what the plan has set already."""
    taken: dict[tuple[str, str], Setting] = {}
    problems = []
    for setting in settings:
        word = setting.name.split("=", 1)[0]
        first = taken.setdefault((setting.kind, word), setting)
        if setting.origin.kind == "file" and first is not setting and first.rank == setting.rank:
            seen = f"`{word}` again; it is {first.value or 'set'} already ({first.origin.where})"
            problems.append(Problem(setting.origin.where, seen, "each setting once", "remove it"))
    if problems:
        raise UsageError(*problems)


def argv_of(settings: Iterable[Setting], rank: int) -> list[str]:
    """Return the flags of one rank, as argv words."""
    words: list[str] = []
    for setting in settings:
        if setting.kind == "flag" and setting.rank in (None, rank):
            words += [setting.name] if setting.value is None else [setting.name, setting.value]
    return words


def env_of(settings: Iterable[Setting], rank: int) -> tuple[tuple[str, str], ...]:
    """Return the variables of one rank; one without a value is absent.

    Raises ValueError for an empty value, which some programs take for 0.
    """
    found = []
    for setting in settings:
        if setting.kind == "env" and setting.rank in (None, rank) and setting.value is not None:
            if not setting.value:
                raise ValueError(f"{setting.name} is empty")
            found.append((setting.name, setting.value))
    return tuple(found)
