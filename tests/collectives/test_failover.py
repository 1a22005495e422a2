"""A failover may cost time, never a bit: any lane, any moment, any packet that comes too late."""

import ctypes
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.collectives import failover_native as tf
from tests.collectives.fakes import SMALL
from tests.collectives.oracle import raw, reduced, shard
from tests.collectives.rails import Rails, RailTransport
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.fake import run_together, until
from tetraspark.collectives.group import Group
from tetraspark.collectives.native import Write
from tetraspark.collectives.opening import Link, opening

LIMIT_S = 60.0
"""Virtual: many times what any failover takes, and less than the limit of a late peer."""


def open_rails(rails: Rails) -> dict[int, Group]:
    told = replace(SMALL, lanes=rails.lanes, max_two_shot_bytes=SMALL.max_reduce_bytes)
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
    """All-reduce each size in turn while the events happen; every result must be the oracle's.

    Every other one goes two-shot.
    """
    rails.plans = [(event.at, partial(apply, rails, event)) for event in events]
    for step, count in enumerate(units):
        shards = [shard(step, rank, (count * 8,)) for rank in range(rails.world)]
        outs = {rank: torch.empty_like(shards[rank]) for rank in groups}
        way = tuple(Algorithm)[step % 2]
        steps = {
            rank: group.begin_all_reduce(shards[rank], outs[rank], way).step
            for rank, group in groups.items()
        }
        results = until(rails, steps, LIMIT_S)
        errors = [one for one in results.values() if isinstance(one, CollectiveError)]
        wanted = raw(reduced(shards))
        for rank, result in results.items():
            assert result is True or isinstance(result, CollectiveError), (rank, result)
            assert result is not True or raw(outs[rank]) == wanted, f"rank {rank}, step {step}"
        if errors:
            # A rank whose operation was over learns it when it looks next.
            others: dict[int, Callable[[], bool]] = {
                rank: partial(look, groups[rank]) for rank in groups if results[rank] is True
            }
            told = until(rails, others, LIMIT_S).values()
            return Run(step, [*errors, *(one for one in told if isinstance(one, CollectiveError))])
    return Run(len(units), [])


def look(group: Group) -> bool:
    """Look once at a group that must have failed."""
    group._link.supervisor.inspect()
    return False


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


def check(rails: Rails, run: Run, events: list[Event]) -> None:
    """One root on every rank, only for want of lanes; none where a lane was never touched."""
    roots = {error.root for error in run.errors}
    assert len(run.errors) in (0, rails.world) and len(roots) <= 1
    assert all("no lane to it is left" in root.detail for root in roots), roots
    touched = {(event.pair, event.lane) for event in events if event.kind != "heal"}
    pairs = Counter(pair for pair, _ in touched)
    if max(pairs.values(), default=0) < rails.lanes:
        assert run.right == len(UNITS)


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(data=st.data(), seed=st.integers(0, 1 << 20), rejoin=st.booleans())
def test_right_bits_or_a_named_failure(data: st.DataObject, seed: int, rejoin: bool) -> None:
    world, lanes = data.draw(st.sampled_from([(2, 2), (2, 4), (3, 2), (3, 3)]))
    kinds = ("one", "both", "held", "lost", *(("heal",) if rejoin else ()))
    events = data.draw(scenario(world, lanes, kinds))
    rails = Rails(world, lanes, seed, rejoin=rejoin)
    check(rails, stream(rails, open_rails(rails), UNITS, events), events)


def test_the_model_has_late_packets_lost_stripes_and_lanes_that_return() -> None:
    """What the property is worth: all that may go wrong does go wrong in a few runs."""
    counts: Counter[str] = Counter()
    for seed in range(8):
        events = [
            Event(20, "held", (0, 1), seed % 3),
            Event(60, "one", (0, 2), 1),
            Event(75, "both", (0, 1), (seed + 1) % 3),
            Event(150, "heal", (0, 1), seed % 3),
        ]
        rails = Rails(3, 3, seed, rejoin=True)
        run = stream(rails, open_rails(rails), UNITS, events)
        check(rails, run, events)
        counts.update(rails.counts)
        counts["resent"] += sum(sum(pair.resent) for pair in rails.pairs.values())
    print(counts)
    assert all(counts[name] > 0 for name in ("died", "late", "stopped", "rejoined", "resent"))


def test_the_last_lane_is_a_named_failure_on_every_rank() -> None:
    rails = Rails(3, 2, 5)
    groups = open_rails(rails)
    events = [Event(10, "lost", (0, 1), 0), Event(12, "lost", (0, 1), 1)]
    run = stream(rails, groups, UNITS, events)
    (root,) = {error.root for error in run.errors}
    assert len(run.errors) == 3 and run.right < len(UNITS)
    assert root.kind == "lane" and {root.reporter, root.peer} == {0, 1}


@pytest.mark.parametrize("damage", ["checksum", "number", "old"])
def test_a_message_that_is_torn_or_old_is_not_heard(damage: str) -> None:
    library, one, other = tf.failover(), tf.Pair(), tf.Pair()
    for pair in (one, other):
        library.tf_open(pair, 2, 3)
    library.tf_fail(one, 0)
    library.tf_stopped(one, 0)
    first, second = tf.Message(), tf.Message()
    assert library.tf_say(one, first) and library.tf_say(one, second)
    if damage == "checksum":
        second.lane[0].phase = tf.UP
    elif damage == "number":
        second.number += 1
    else:
        assert library.tf_hear(other, second, None, 0)
        second = first
    assert not library.tf_hear(other, second, None, 0)
    assert library.tf_wanted(other, 0) == (tf.STOP if damage == "old" else tf.NOTHING)


def test_a_question_outside_the_region_is_answered_no() -> None:
    library, one, other = tf.failover(), tf.Pair(), tf.Pair()
    for pair in (one, other):
        library.tf_open(pair, 2, 3)
    memory = ctypes.create_string_buffer((7 << 32 | 5).to_bytes(8, "little"), 8)
    for place, arrived in ((0, 1), (8, 0), (1 << 63, 0), ((1 << 64) - 8, 0)):
        write = Write(peer=1, sequence=7, flag_target=place, flag=7 << 32 | 5)
        library.tf_open(one, 2, 3), library.tf_open(other, 2, 3)
        library.tf_gave(one, write, 0)
        for pair in (one, other):
            library.tf_fail(pair, 0)
            library.tf_stopped(pair, 0)
        message = tf.Message()
        assert library.tf_say(one, message)
        assert library.tf_hear(other, message, ctypes.addressof(memory), 8)
        assert (other.own[0].answered, other.own[0].arrived) == (1, arrived)
