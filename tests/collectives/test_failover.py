"""A failover may cost time, never a bit: any lane, any moment, any packet that comes too late."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectives.fakes import SMALL
from tests.collectives.oracle import raw, reduced, shard
from tests.collectives.rails import Rails, RailTransport
from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.fake import run_together, until
from tetraspark.collectives.group import Group
from tetraspark.collectives.opening import Link, opening

LIMIT_S = 60.0
"""Virtual: many times what any failover takes, and less than the limit of a late peer."""


def open_rails(rails: Rails) -> dict[int, Group]:
    told = replace(SMALL, lanes=rails.lanes)
    world = rails.world
    steps = {rank: opening(rank, world, told, RailTransport(rails, rank)) for rank in range(world)}
    links = run_together(rails, steps)
    assert all(isinstance(link, Link) for link in links.values()), links
    return {rank: Group(link) for rank, link in links.items() if isinstance(link, Link)}


@dataclass
class Run:
    """Results of a stream of all-reduces: how many were right, and each rank's error if any."""

    right: int
    errors: list[CollectiveError]


@dataclass(frozen=True)
class Event:
    """Something that happens to one lane of one pair, `at` ticks after the stream began.

    `kind`: "one" end or "both" see it fail while packets still arrive; "held": they rest on the
    wire; "lost": they vanish; "heal": the wire works again.
    """

    at: int
    kind: str
    pair: tuple[int, int]
    lane: int


def apply(rails: Rails, event: Event) -> None:
    """Let it happen."""
    low, high = event.pair
    lane = (low, high, event.lane)
    if event.kind == "heal":
        rails.trouble.held.discard(lane)
        rails.trouble.lost.discard(lane)
        return
    if event.kind in ("held", "lost"):
        getattr(rails.trouble, event.kind).add(lane)
    rails.fail(lane)
    if event.kind != "one":
        rails.fail((high, low, event.lane))


def stream(rails: Rails, groups: dict[int, Group], units: list[int], events: list[Event]) -> Run:
    """All-reduce each size in turn while the events happen; every result must be the oracle's."""
    rails.plans = [(event.at, partial(apply, rails, event)) for event in events]
    for step, count in enumerate(units):
        shards = [shard(step, rank, (count * 8,)) for rank in range(rails.world)]
        outs = {rank: torch.empty_like(shards[rank]) for rank in groups}
        steps = {
            rank: group.begin_all_reduce(shards[rank], outs[rank]).step
            for rank, group in groups.items()
        }
        results = until(rails, steps, LIMIT_S)
        errors = [one for one in results.values() if isinstance(one, CollectiveError)]
        wanted = raw(reduced(shards))
        for rank, result in results.items():
            assert result is True or isinstance(result, CollectiveError), (rank, result)
            assert result is not True or raw(outs[rank]) == wanted, f"rank {rank}, step {step}"
        if errors:
            return Run(step, errors)
    return Run(len(units), [])


def scenario(world: int, lanes: int, kinds: tuple[str, ...]) -> st.SearchStrategy[list[Event]]:
    """Return events on any lanes of such a group."""
    event = st.builds(
        Event,
        at=st.integers(0, 250),
        kind=st.sampled_from(kinds),
        pair=st.sampled_from(list(combinations(range(world), 2))),
        lane=st.integers(0, lanes - 1),
    )
    return st.lists(event, min_size=1, max_size=6)


UNITS = [1, 40, 256, 3, 128, 200, 17, 64, 256, 5, 90, 31]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 20), rejoin=st.booleans())
def test_right_bits_or_a_named_failure(data: st.DataObject, seed: int, rejoin: bool) -> None:
    world, lanes = data.draw(st.sampled_from([(2, 2), (2, 4), (3, 2), (3, 3)]))
    kinds = ("one", "both", "held", "lost", *(("heal",) if rejoin else ()))
    events = data.draw(scenario(world, lanes, kinds))
    rails = Rails(world, lanes, seed, rejoin=rejoin)
    run = stream(rails, open_rails(rails), UNITS, events)
    roots = {error.root for error in run.errors}
    assert len(run.errors) in (0, world) and len(roots) <= 1
    # Nothing fails but for want of lanes.
    assert all("no lane to it is left" in root.detail for root in roots), roots
    touched = {(event.pair, event.lane) for event in events if event.kind != "heal"}
    if max(len({lane for _, lane in touched}) for _ in events) < lanes:
        assert run.right == len(UNITS)
