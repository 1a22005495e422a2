"""The steps of a qualification, as a table: which verb, with what, and what it needs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tetraspark.measure.qualification.sizes import Sizes, sizes_of
from tetraspark.site.schema import Site

LOCAL = "not for a local line: its ranks share memory, there are no RDMA lanes"
RING = "not for a ring: device l of a node does not reach device l of every other"


@dataclass(frozen=True)
class Step:
    """One step: `words` go after `tetraspark`; the site and `--json` are added to them.

    It runs when every step of `needs` has passed. `why_not` says why it is not for this line.
    A `closing` step ends what a step of `needs` began, also after an interruption.
    """

    name: str
    words: tuple[str, ...]
    needs: tuple[str, ...] = ()
    why_not: str = ""
    closing: bool = False


def steps_of(site: Site, quick: bool, keep: bool) -> tuple[Step, ...]:
    """Return the steps for a site, in order; with `keep` the line is left running."""
    size = sizes_of(site, quick)
    served = ("serve",)
    steps = (
        Step("doctor", ("doctor",)),
        Step("lanes", ("qualify", "fabric"), why_not=_no_lanes(site)),
        Step("serve", ("serve",)),
        Step("smoke", ("smoke",), served),
        Step("decode", _decode(size), served),
        Step("prefill", _prefill(size), served),
        Step("needle", _needle(size), served),
        Step("soak", _soak(size), served),
        Step("quality", _quality(size), served),
    )
    return steps if keep else (*steps, Step("stop", ("stop",), served, closing=True))


def _no_lanes(site: Site) -> str:
    if site.kind == "local":
        return LOCAL
    return RING if site.fabric is not None and site.fabric.topology == "ring" else ""


def _decode(size: Sizes) -> tuple[str, ...]:
    return (
        *("bench", "decode", "--concurrency", _list(size.concurrencies)),
        *("--kinds", _list(size.kinds), "--sampling", size.sampling),
        *("--max-tokens", str(size.max_tokens), "--rounds", str(size.rounds)),
    )


def _prefill(size: Sizes) -> tuple[str, ...]:
    lengths = ("--lengths", _list(size.prefill), "--filler")
    return ("bench", "prefill", *lengths, "--repeats", str(size.repeats))


def _needle(size: Sizes) -> tuple[str, ...]:
    return ("needle", "--lengths", _list(size.needle), "--depths", _list(size.depths))


def _soak(size: Sizes) -> tuple[str, ...]:
    return (
        *("soak", "--minutes", f"{size.soak_minutes:g}", "--streams", str(size.soak_streams)),
        *("--max-tokens", str(size.max_tokens), "--prefill", str(size.soak_prefill)),
    )


def _quality(size: Sizes) -> tuple[str, ...]:
    only = ("--only", _list(size.quality_kinds)) if size.quality_kinds else ()
    return ("quality", *only, "--concurrency", str(size.concurrencies[-1]))


def _list(values: Sequence[object]) -> str:
    return ",".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)
