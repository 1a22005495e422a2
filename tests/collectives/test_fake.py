"""Every fault the scheduler can make, on the proxy, endpoints and supervisors of the real thing."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectives.fakes import Opened, open_on
from tests.collectives.oracle import raw, reduced, shard
from tetraspark.collectives.fabric import Fabric, Faults
from tetraspark.collectives.failure import CollectiveError, Failure, Kind, RefusedError
from tetraspark.collectives.fake import until
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.routes import Routes

Open = Callable[..., Opened]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
FOREVER_S = 1000.0


def reduce_all(
    opened: Opened, shape: tuple[int, ...], dtype: torch.dtype = torch.bfloat16, seed: int = 0
) -> tuple[dict[int, object], dict[int, torch.Tensor]]:
    """Start one all-reduce on every rank that runs, drive it to the end; return all results."""
    ranks = [rank for rank in opened.groups if opened.fabric.alive(rank)]
    outs = {rank: torch.empty(shape, dtype=dtype) for rank in ranks}
    steps = {}
    for rank in ranks:
        tensor = shard(seed, rank, shape, dtype)
        steps[rank] = opened.groups[rank].begin_all_reduce(tensor, outs[rank]).step
    return until(opened.fabric, steps, FOREVER_S), outs


def expect(opened: Opened, shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> None:
    """All-reduce and compare every rank's bits with the oracle's."""
    world = opened.fabric.world
    results, outs = reduce_all(opened, shape, dtype, seed)
    wanted = raw(reduced([shard(seed, rank, shape, dtype) for rank in range(world)]))
    assert results == dict.fromkeys(range(world), True)
    assert [raw(outs[rank]) for rank in range(world)] == [wanted] * world


def one_root(results: dict[int, object], ranks: list[int]) -> Failure:
    """Return the root that all these ranks raised."""
    errors = [results[rank] for rank in ranks]
    assert all(isinstance(error, CollectiveError) for error in errors), results
    roots = {error.root for error in errors if isinstance(error, CollectiveError)}
    assert len(roots) == 1, roots
    return roots.pop()


@pytest.mark.parametrize("world", range(2, 9))
def test_bits_under_delay_reordering_and_duplicates(open_fake: Open, world: int) -> None:
    faults = Faults(hold_back=0.8, duplicate=0.3)
    opened = open_fake(world, seed=world, faults=faults, lanes=1 + world % 4)
    for seed in range(12):
        shape = (8 * (1 + (seed * 37) % 128),)
        expect(opened, shape, DTYPES[seed % 3], seed)


@settings(max_examples=25, deadline=None)
@given(
    world=st.integers(2, 8),
    lanes=st.integers(1, 4),
    seed=st.integers(0, 1 << 20),
    units=st.lists(st.integers(1, 256), min_size=3, max_size=6),
    hold_back=st.floats(0, 0.9),
)
def test_bits_of_any_schedule(
    world: int, lanes: int, seed: int, units: list[int], hold_back: float
) -> None:
    opened = open_on(world, seed, Faults(hold_back=hold_back, duplicate=0.1), lanes=lanes)
    for step, count in enumerate(units):
        dtype = DTYPES[(seed + step) % 3]
        expect(opened, (count * 16 // dtype.itemsize,), dtype, seed + step)


@pytest.mark.parametrize("start", [0, (1 << 32) - 8, (1 << 32) - 5, (1 << 32) - 1, 1 << 31])
def test_the_sequence_wraps(open_fake: Open, start: int) -> None:
    opened = open_fake(3, faults=Faults(hold_back=0.7), lanes=2, start_sequence=start)
    for seed in range(12):
        expect(opened, (64,), torch.float32, seed)
    sequences = {group.state()["sequence"] for group in opened.groups.values()}
    assert sequences == {(start + 16) if start + 16 < 1 << 32 else (start + 18) % (1 << 32)}


def test_unequal_lanes_of_pairs(open_fake: Open) -> None:
    routes = Routes(3, 3, (((0, 1), (2,)), ((0, 2), (0, 1, 2)), ((1, 2), (1, 0))))
    opened = open_fake(3, lanes=3, routes=routes)
    for seed in range(4):
        expect(opened, (40,), torch.bfloat16, seed)
    state = opened.groups[0].state()
    lanes = {peer["rank"]: [lane["lane"] for lane in peer["lanes"]] for peer in state["peers"]}
    assert lanes == {1: [2], 2: [0, 1, 2]}


def test_reduces_and_gathers_interleave(open_fake: Open) -> None:
    opened = open_fake(4, faults=Faults(hold_back=0.8), lanes=2)
    for seed in range(6):
        expect(opened, (32,), torch.bfloat16, seed)
        sizes = [seed, 3, 0, 9]
        shards = [shard(seed, rank, (2, sizes[rank])) for rank in range(4)]
        begun = {
            rank: group.begin_all_gather(shards[rank], -1, sizes)
            for rank, group in opened.groups.items()
        }
        results = until(
            opened.fabric, {rank: pending.step for rank, (pending, _) in begun.items()}, FOREVER_S
        )
        assert results == dict.fromkeys(range(4), True)
        wanted = raw(torch.cat(shards, -1))
        assert {raw(result) for _, result in begun.values()} == {wanted}


GATHERED = (torch.int64, torch.bfloat16, torch.uint8, torch.float8_e4m3fn, torch.bool)


@settings(max_examples=25, deadline=None)
@given(
    world=st.integers(2, 8),
    seed=st.integers(0, 1 << 20),
    rows=st.integers(0, 5),
    data=st.data(),
    last=st.booleans(),
)
def test_gathers_of_any_shape(
    world: int, seed: int, rows: int, data: st.DataObject, last: bool
) -> None:
    dtype = GATHERED[seed % len(GATHERED)]
    widths = st.lists(st.integers(0, 20), min_size=world, max_size=world)
    sizes = data.draw(widths) if last else [rows] * world
    shapes = [(rows, 2, size) if last else (rows, 7) for size in sizes]
    shards = [shard(seed, rank, shapes[rank], dtype) for rank in range(world)]
    opened = open_on(world, seed, Faults(hold_back=0.6), lanes=1 + seed % 4)
    begun = {
        rank: group.begin_all_gather(shards[rank], -1 if last else 0, sizes)
        for rank, group in opened.groups.items()
    }
    steps = {rank: pending.step for rank, (pending, _) in begun.items()}
    assert until(opened.fabric, steps, FOREVER_S) == dict.fromkeys(range(world), True)
    wanted = torch.cat(shards, -1 if last else 0)
    for _, result in begun.values():
        assert result.shape == wanted.shape
        assert raw(result) == raw(wanted)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (((4, 4), -1, [4, 4, 5]), "they list different sizes"),
        (((4, 4), 0, None), "gather_first"),
        (((2, 8), -1, [4, 8, 4]), "[2, 8]"),
    ],
)
def test_gathers_that_disagree_are_an_error(
    open_fake: Open, odd: tuple[tuple[int, int], int, list[int] | None], words: str
) -> None:
    opened = open_fake(3)
    steps = {}
    for rank, group in opened.groups.items():
        shape, dim, sizes = odd if rank == 1 else ((4, 4), -1, [4, 4, 4])
        steps[rank] = group.begin_all_gather(torch.ones(shape), dim, sizes)[0].step
    root = one_root(until(opened.fabric, steps, FOREVER_S), [0, 1, 2])
    assert root.kind is Kind.MISMATCH
    assert words in root.detail


def test_a_rank_that_starts_late_is_waited_for_and_reported(
    open_fake: Open, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_fake(3)
    outs = {rank: torch.empty(64) for rank in range(3)}
    tensors = [shard(1, rank, (64,), torch.float32) for rank in range(3)]
    begun = {
        rank: opened.groups[rank].begin_all_reduce(tensors[rank], outs[rank]) for rank in (0, 1)
    }
    with pytest.raises(TimeoutError):
        until(opened.fabric, {rank: begun[rank].step for rank in (0, 1)}, 5.0)
    begun[2] = opened.groups[2].begin_all_reduce(tensors[2], outs[2])
    results = until(opened.fabric, {rank: begun[rank].step for rank in begun}, FOREVER_S)
    assert results == dict.fromkeys(range(3), True)
    assert {raw(out) for out in outs.values()} == {raw(reduced(tensors))}
    late = opened.groups[0].state()["peers"][1]["late"]
    assert late["count"] == 1
    assert 4.5 < late["longest_s"] < 5.5
    told = [record.getMessage() for record in caplog.records]
    words = "has waited 1.0 s for rank 2 at sequence 5: it is late: it has begun 4"
    assert sorted(told) == [f"rank 0 {words}", f"rank 1 {words}"]
    assert "it is late: it has begun 4" in late["last"]


def test_a_starved_proxy_is_late_not_dead(open_fake: Open) -> None:
    opened = open_fake(4)
    opened.fabric.faults.starved.add(2)
    outs = {rank: torch.empty(64) for rank in range(4)}
    tensors = [shard(1, rank, (64,), torch.float32) for rank in range(4)]
    begun = {
        rank: group.begin_all_reduce(tensors[rank], outs[rank])
        for rank, group in opened.groups.items()
    }
    with pytest.raises(TimeoutError):
        until(opened.fabric, {rank: begun[rank].step for rank in (0, 1, 3)}, 5.0)
    seen = opened.groups[0].state()["peers"][1]
    assert seen["life"] == "running"
    opened.fabric.faults.starved.clear()
    results = until(opened.fabric, {rank: begun[rank].step for rank in begun}, FOREVER_S)
    assert results == dict.fromkeys(range(4), True)
    assert {raw(out) for out in outs.values()} == {raw(reduced(tensors))}


def test_a_late_rank_fails_the_group_at_the_limit(open_fake: Open) -> None:
    opened = open_fake(3, late_limit_s=2.0)
    out = torch.empty(64)
    begun = {
        rank: opened.groups[rank].begin_all_reduce(torch.ones(64), out.clone()) for rank in (0, 1)
    }
    start = opened.fabric.time
    results = until(opened.fabric, {rank: begun[rank].step for rank in begun}, FOREVER_S)
    assert 2.0 < opened.fabric.time - start < 4.0
    root = one_root(results, [0, 1])
    assert (root.kind, root.peer, root.sequence, root.nbytes) == (Kind.LATE, 2, 5, 256)
    with pytest.raises(CollectiveError) as late:
        opened.groups[2].check(1.0)
    assert late.value.root == root


def check_the_finished(opened: Opened, results: dict[int, object]) -> None:
    """Ranks that had everything finish; they must learn of it at their result boundary."""
    for rank in range(4):
        if results[rank] is True:
            with pytest.raises(CollectiveError) as raised:
                opened.groups[rank].check(1.0)
            results[rank] = raised.value


def test_a_dropped_write_names_its_lane_on_every_rank(open_fake: Open) -> None:
    opened = open_fake(4, lanes=3, ack_limit_s=1.0)
    opened.fabric.faults.drop.add((1, 3, 2))
    start = opened.fabric.time
    results, _ = reduce_all(opened, (256,))
    check_the_finished(opened, results)
    root = one_root(results, [0, 1, 2, 3])
    assert (root.kind, {root.reporter, root.peer}, root.lane) == (Kind.LANE, {1, 3}, 2)
    assert "not acknowledged" in root.detail
    assert 1.0 < opened.fabric.time - start < 3.0


def test_a_lane_error_fails_the_rank_that_has_it_first(open_fake: Open) -> None:
    opened = open_fake(4, lanes=2)
    opened.fabric.faults.fail.add((0, 2, 1))
    start = opened.fabric.time
    results, _ = reduce_all(opened, (256,))
    check_the_finished(opened, results)
    root = one_root(results, [0, 1, 2, 3])
    assert (root.kind, root.reporter, root.peer, root.lane) == (Kind.LANE, 0, 2, 1)
    assert (root.sequence, root.nbytes) == (5, 512)
    assert opened.fabric.time - start < 2.0


def test_a_lost_flag_is_called_lost(open_fake: Open) -> None:
    opened = open_fake(3, lanes=2)
    opened.fabric.faults.lose_flag.add((2, 0, 0))
    results, _ = reduce_all(opened, (256,))
    root = one_root({0: results[0]}, [0])
    assert (root.kind, root.reporter, root.peer, root.lane) == (Kind.LOST, 0, 2, 0)


@pytest.mark.timed
@pytest.mark.parametrize("life", [Life.DEAD, Life.STOPPED])
def test_a_gone_or_frozen_process_is_named(open_fake: Open, life: Life) -> None:
    opened = open_fake(4, freeze_limit_s=3.0)
    opened.fabric.faults.life[1] = life
    start = opened.fabric.time
    results, _ = reduce_all(opened, (64,))
    root = one_root(results, [0, 2, 3])
    wanted = Kind.DEAD if life is Life.DEAD else Kind.FROZEN
    assert (root.kind, root.peer) == (wanted, 1)
    took = opened.fabric.time - start
    assert took < 1.0 if life is Life.DEAD else 3.0 < took < 4.0


@given(seed=st.integers(0, 1 << 20))
@settings(max_examples=15, deadline=None)
def test_any_schedule_of_a_mismatch_has_one_root(seed: int) -> None:
    opened = open_on(4, seed, Faults(hold_back=0.9), lanes=2)
    outs = {rank: torch.zeros(64 if rank != 1 else 128) for rank in range(4)}
    steps = {
        rank: group.begin_all_reduce(torch.ones_like(outs[rank]), outs[rank]).step
        for rank, group in opened.groups.items()
    }
    results = until(opened.fabric, steps, FOREVER_S)
    root = one_root(results, [0, 1, 2, 3])
    assert root.kind is Kind.MISMATCH
    assert 1 in (root.peer, root.reporter)
    assert "[64] of 256 bytes" in root.detail or "[128] of 512 bytes" in root.detail
    assert all(torch.count_nonzero(out) == 0 for out in outs.values())


def test_inner_dimensions_are_part_of_the_shape(open_fake: Open) -> None:
    opened = open_fake(3)
    steps = {}
    for rank, group in opened.groups.items():
        tensor = torch.ones((4, 2, 8) if rank == 2 else (2, 4, 8))
        steps[rank] = group.begin_all_reduce(tensor, torch.empty_like(tensor)).step
    root = one_root(until(opened.fabric, steps, FOREVER_S), [0, 1, 2])
    assert root.kind is Kind.MISMATCH
    assert "[4, 2, 8]" in root.detail
    assert "[2, 4, 8]" in root.detail


def test_a_step_that_meets_an_abort_never_says_done(open_fake: Open) -> None:
    opened = open_fake(3)
    with pytest.raises(CollectiveError) as first:
        opened.groups[0].check(0.1, lambda: False)
    pending = opened.groups[1].begin_all_reduce(torch.ones(64), torch.empty(64))
    results = until(opened.fabric, {1: pending.step}, FOREVER_S)
    assert one_root(results, [1]) == first.value.root


def test_a_kernel_that_does_not_see_its_flags_is_named(open_fake: Open) -> None:
    opened = open_fake(2)
    results, _ = reduce_all(opened, (64,))
    assert results == {0: True, 1: True}
    # What a kernel leaves that was started, got every flag, and hangs.
    endpoint = opened.groups[0]._link.endpoint
    endpoint.progress.completed -= 1
    with pytest.raises(CollectiveError, match="the result was not ready"):
        opened.groups[0].check(1.0, lambda: False)
    late = opened.groups[0].state()["peers"][0]["late"]
    assert late["last"] == "every flag is here and the operation has not seen them"


def test_a_kernel_that_waits_for_a_dead_rank_is_aborted_at_the_boundary(open_fake: Open) -> None:
    opened = open_fake(3)
    results, _ = reduce_all(opened, (64,))
    assert len(results) == 3
    opened.groups[0]._link.endpoint.progress.doorbell += 1
    opened.groups[0]._link.endpoint.progress.posted += 1
    opened.fabric.faults.life[2] = Life.DEAD
    start = opened.fabric.time
    with pytest.raises(CollectiveError) as raised:
        opened.groups[0].check(60.0, lambda: False)
    assert (raised.value.root.kind, raised.value.root.peer) == (Kind.DEAD, 2)
    assert opened.fabric.time - start < 1.0


def test_a_rank_one_operation_ahead_is_divergence_not_data(open_fake: Open) -> None:
    opened = open_fake(2)
    opened.groups[1]._link.endpoint.state.sequence += 2
    results, _ = reduce_all(opened, (64,))
    root = one_root(results, [0, 1])
    assert root.kind is Kind.DIVERGED
    assert "at 7" in root.detail


@pytest.mark.parametrize(("fault", "words"), [("drop", "not acknowledged"), ("fail", "lane")])
def test_a_bad_lane_at_opening_refuses_all(open_fake: Open, fault: str, words: str) -> None:
    faults = Faults()
    getattr(faults, fault).add((0, 1, 1))
    opened = open_fake(3, faults=faults, lanes=2, ack_limit_s=0.5)
    assert opened.groups == {}
    texts = {str(error) for error in opened.results.values()}
    assert len(texts) == 1
    assert all(isinstance(error, RefusedError) for error in opened.results.values())
    assert words in texts.pop()


def test_damage_at_opening_is_found_and_its_lane_named(open_fake: Open) -> None:
    class Damaging(Fabric):
        def _deliver(self, key: tuple[int, int, int]) -> None:
            super()._deliver(key)
            parcel = self._queues[key][0] if self._queues[key] else None
            if key == (1, 0, 1) and parcel and parcel.write and parcel.payload_done:
                self.memory[0][parcel.write.target + parcel.write.bytes - 3] = b"!"

    opened = open_on(2, 0, None, fabric=Damaging(2, 0), lanes=2)
    assert opened.groups == {}
    text = str(opened.results[1])
    assert "rank 0: the pattern of rank 1 arrived damaged on lane 1 (PROBE)" in text
