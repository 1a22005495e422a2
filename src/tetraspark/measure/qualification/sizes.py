"""How large the suites of a qualification are: what the line can hold, short or in full. Pure."""

from dataclasses import dataclass

from tetraspark.site.schema import Site

LADDER = tuple(count * 1024 for count in (1, 4, 8, 16, 32, 64, 128, 192, 256, 512, 896))  # tokens
SMALLEST = 256
USED = 0.9
"""Share of the context that a prompt may take: its length is only about what was wanted."""
MOST_PREFILL = 256 * 1024
CONCURRENCIES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the suites; lengths in tokens.

    Nothing in them is more than the site lets the line do, so a cell that is invalid is a finding.
    """

    concurrencies: tuple[int, ...]
    kinds: tuple[str, ...]
    sampling: str
    max_tokens: int
    rounds: int
    prefill: tuple[int, ...]
    repeats: int
    needle: tuple[int, ...]
    depths: tuple[float, ...]
    soak_minutes: float
    soak_streams: int
    soak_prefill: int
    quality_kinds: tuple[str, ...]


def sizes_of(site: Site, quick: bool) -> Sizes:
    """Return the sizes for a site: minutes with `quick`, else hours."""
    engine = site.engine
    context = min(engine.context_length or LADDER[-1], engine.kv_tokens or LADDER[-1])
    lengths = (SMALLEST, *(one for one in LADDER if one <= USED * context))
    together = engine.max_running_requests or CONCURRENCIES[-1]
    at_once = tuple(one for one in CONCURRENCIES if one <= together)
    small = site.kind == "local"
    if quick:
        few = tuple(dict.fromkeys((lengths[0], [one for one in lengths if one <= 8192][-1])))
        return Sizes(
            concurrencies=tuple(dict.fromkeys((1, min(4, at_once[-1])))),
            kinds=("code", "json"),
            sampling="greedy",
            max_tokens=64,
            rounds=1,
            prefill=few,
            repeats=1,
            needle=few,
            depths=(0.5,),
            soak_minutes=0.2 if small else 2,
            soak_streams=min(4, at_once[-1]),
            soak_prefill=few[-1],
            quality_kinds=("NUMBER", "FORMAT"),
        )
    return Sizes(
        concurrencies=at_once,
        kinds=("prose", "code", "structured", "json"),
        sampling="both",
        max_tokens=64 if small else 256,
        rounds=3,
        prefill=tuple(one for one in lengths if one <= MOST_PREFILL),
        repeats=3,
        needle=lengths[-3:],
        depths=(0, 0.25, 0.5, 0.75, 1),
        soak_minutes=10 if small else 60,
        soak_streams=at_once[-1],
        soak_prefill=[one for one in lengths if one <= MOST_PREFILL][-1],
        quality_kinds=(),
    )
