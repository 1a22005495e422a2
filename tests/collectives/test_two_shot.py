"""Two-shot and reduce-scatter on a fabric: the bits, the bytes, the slots, and every fault."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectives.fakes import SMALL, Opened, open_on
from tests.collectives.mixed import KINDS, SEQUENCES, Call, expect
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.fabric import Fabric, Faults
from tetraspark.collectives.failure import CollectiveError, Failure, Kind
from tetraspark.collectives.fake import FakeTransport, run_together, until
from tetraspark.collectives.flags import MAX_SEQUENCE
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.opening import opening

Open = Callable[..., Opened]
LIMIT = 4096
OPENING = 6
"""Sequences of the proof: two for each of three areas."""

CALLS = st.builds(
    Call, st.sampled_from(KINDS), st.integers(1, 128), st.integers(0, 1 << 20), st.booleans()
)


def two_shot(world: int, seed: int = 0, faults: Faults | None = None, **told: Any) -> Opened:
    """Open a small group that takes two-shot operations."""
    return open_on(world, seed, faults, max_two_shot_bytes=LIMIT, **told)


def sent(opened: Opened, rank: int) -> dict[int, int]:
    """Return the bytes that a rank has posted to each peer, over all lanes."""
    peers = opened.groups[rank].state()["peers"]
    return {peer["rank"]: sum(lane["bytes"] for lane in peer["lanes"]) for peer in peers}


@settings(max_examples=40, deadline=None)
@given(
    world=st.integers(2, 8),
    lanes=st.integers(1, 4),
    seed=st.integers(0, 1 << 20),
    start=st.just(0) | st.integers(MAX_SEQUENCE - 30, MAX_SEQUENCE),
    hold_back=st.floats(0, 0.9),
    calls=st.lists(CALLS, min_size=3, max_size=10),
)
def test_bits_of_any_mix_of_operations(
    world: int, lanes: int, seed: int, start: int, hold_back: float, calls: list[Call]
) -> None:
    faults = Faults(hold_back=hold_back, duplicate=0.2)
    opened = two_shot(world, seed, faults, lanes=lanes, start_sequence=start)
    for call in calls:
        expect(opened, call)
    taken = OPENING + sum(SEQUENCES.get(call.kind, 1) for call in calls)
    # 0 and 1 are left out at the wrap.
    last = start + taken if start + taken <= MAX_SEQUENCE else (start + taken + 2) % (1 << 32)
    states = [group.state() for group in opened.groups.values()]
    assert {state["sequence"] for state in states} == {last}
    assert {state["operations"] for state in states} == {OPENING + len(calls)}


@pytest.mark.parametrize("world", range(2, 9))
def test_every_size_and_dtype_has_the_bits_of_the_oracle(open_fake: Open, world: int) -> None:
    opened = open_fake(world, lanes=2, max_two_shot_bytes=LIMIT)
    for units in [*range(1, world + 2), 129 - 128 % world, LIMIT // 16]:
        for seed in range(3):
            expect(opened, Call("two-shot", units, seed, in_place=units % 2 == 0))
        expect(opened, Call("scatter", units, units))


@pytest.mark.parametrize(
    ("shape", "dim", "rows"),
    [
        ((6, 8), 0, [2, 2, 1, 1]),
        ((3, 8), 0, [1, 1, 1, 0]),
        ((8, 4), 0, [2, 2, 2, 2]),
        ((3, 8), -1, [8, 0, 0, 0]),
        ((2, 3, 16), 2, [4, 4, 4, 4]),
    ],
)
def test_the_part_of_each_rank(
    open_fake: Open, shape: tuple[int, ...], dim: int, rows: list[int]
) -> None:
    opened = open_fake(4, max_two_shot_bytes=LIMIT)
    given = [torch.full(shape, float(rank + 1)) * torch.arange(shape[dim]) if dim else
             torch.full(shape, float(rank + 1)) for rank in range(4)]  # fmt: skip
    given = [tensor.to(torch.bfloat16) for tensor in given]
    begun = {rank: opened.groups[rank].begin_reduce_scatter(given[rank], dim) for rank in range(4)}
    steps = {rank: pending.step for rank, (pending, _) in begun.items()}
    assert until(opened.fabric, steps, 100.0) == dict.fromkeys(range(4), True)
    whole = torch.stack([tensor.float() for tensor in given]).sum(0).to(torch.bfloat16)
    for rank, part in enumerate(torch.split(whole, rows, dim)):
        assert begun[rank][1].shape == part.shape
        assert torch.equal(begun[rank][1], part)


@pytest.mark.parametrize(("world", "ratio"), [(2, 1.0), (4, 0.5), (8, 0.25)])
def test_the_bytes_on_the_wire(open_fake: Open, world: int, ratio: float) -> None:
    opened = open_fake(world, lanes=3, max_two_shot_bytes=LIMIT)
    units, header = 128, 128
    posted = {}
    for kind in ("one-shot", "two-shot", "scatter"):
        before = sent(opened, 0)
        expect(opened, Call(kind, units, 1))
        after = sent(opened, 0)
        posted[kind] = {peer: after[peer] - before[peer] for peer in after}
    size, peers = units * 16, range(1, world)
    chunk = size // world
    assert posted["one-shot"] == dict.fromkeys(peers, size + header)
    assert posted["two-shot"] == dict.fromkeys(peers, 2 * (chunk + header))
    assert posted["scatter"] == dict.fromkeys(peers, chunk + header)
    headers = {"one-shot": header, "two-shot": 2 * header}
    payload = {kind: sum(posted[kind].values()) - headers[kind] * (world - 1) for kind in headers}
    assert payload["two-shot"] / payload["one-shot"] == ratio


def test_the_bytes_of_a_size_that_does_not_divide(open_fake: Open) -> None:
    opened = open_fake(4, max_two_shot_bytes=LIMIT)
    before = sent(opened, 1)
    expect(opened, Call("two-shot", 6, 1))
    after = sent(opened, 1)
    # Chunks of 2, 2, 1 and 1 units: each peer's own, then this rank's two to everyone.
    posted = {peer: after[peer] - before[peer] for peer in after}
    assert posted == {0: 256 + 32 + 32, 2: 256 + 16 + 32, 3: 256 + 16 + 32}


def test_a_size_takes_the_way_that_the_group_was_told(open_fake: Open) -> None:
    opened = open_fake(2, max_two_shot_bytes=8192, two_shot_from=2048)
    group = opened.groups[0]

    def taken(nbytes: int) -> int:
        before = group.state()["sequence"]
        outs = [torch.zeros(nbytes // 4) for _ in range(2)]
        steps = {r: opened.groups[r].begin_all_reduce(outs[r], outs[r]).step for r in range(2)}
        assert until(opened.fabric, steps, 100.0) == {0: True, 1: True}
        return int(group.state()["sequence"] - before)

    assert [taken(nbytes) for nbytes in (2032, 2048, 8192)] == [1, 2, 2]
    assert [group.fits(nbytes, torch.float32) for nbytes in (4096, 8192, 8208)] == [
        True, True, False,
    ]  # fmt: skip
    assert not group.fits(8192, torch.float32, Algorithm.ONE_SHOT)


def test_an_algorithm_is_known_by_its_word_and_no_other(open_fake: Open) -> None:
    group: Any = open_fake(2, max_two_shot_bytes=8192).groups[0]
    assert group.fits(8192, torch.float32, "two-shot")
    with pytest.raises(ValueError, match="'three-shot' is not a valid Algorithm"):
        group.all_reduce(torch.zeros(4), None, "three-shot")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: g.reduce_scatter(torch.zeros(4)), r"at most 0 \(max_two_shot_bytes\)"),
        (
            lambda g: g.all_reduce(torch.zeros(4), None, Algorithm.TWO_SHOT),
            "at most 0 for two-shot",
        ),
    ],
)
def test_a_group_without_chunks_refuses(
    open_fake: Open, call: Callable[[Any], object], words: str
) -> None:
    group = open_fake(2).groups[0]
    assert not group.fits_reduce_scatter((4,), torch.float32)
    with pytest.raises(ValueError, match=words):
        call(group)
    assert group.state()["sequence"] == OPENING - 2


@pytest.mark.parametrize(
    ("tensor", "dim", "words"),
    [
        (torch.zeros(3), 0, "does not fit"),
        (torch.zeros(2048), 0, "at most 4096"),
        (torch.zeros(1, 1024), 0, "2048 for one rank along dim 0"),
        (torch.zeros(4, dtype=torch.int32), 0, "does not fit"),
        (torch.zeros(2, 2, 4), 1, "dim 1"),
        (torch.zeros(()), 0, "wanted the first"),
        (torch.zeros(0, 4), 0, "does not fit"),
    ],
)
def test_what_cannot_be_scattered_is_refused(
    open_fake: Open, tensor: torch.Tensor, dim: int, words: str
) -> None:
    group = open_fake(2, max_two_shot_bytes=LIMIT).groups[0]
    with pytest.raises(ValueError, match=words):
        group.reduce_scatter(tensor, dim)
    assert group.state()["sequence"] == OPENING


# ---- faults ------------------------------------------------------------------------------------


def root_of_all(opened: Opened, results: dict[int, object]) -> Failure:
    """Return the one root; ranks that had finished meet it in the operation after."""
    for rank in [rank for rank, fate in results.items() if fate is True]:
        out = torch.zeros(64)
        try:
            pending = opened.groups[rank].begin_all_reduce(out, out)
        except CollectiveError as error:
            results[rank] = error
        else:
            results |= until(opened.fabric, {rank: pending.step}, 1000.0)
    assert all(isinstance(fate, CollectiveError) for fate in results.values()), results
    roots = {fate.root for fate in results.values() if isinstance(fate, CollectiveError)}
    assert len(roots) == 1, results
    return roots.pop()


def strike(
    opened: Opened, victim: int, sequence: int, fault: Callable[[], None], call: Call
) -> dict[int, object]:
    """Run one call; once the victim has begun `sequence`, before it looks again, the fault."""
    begun = {rank: call.begin(opened, rank)[0] for rank in opened.groups}
    struck = False

    def step() -> bool:
        nonlocal struck
        if not struck and opened.groups[victim].state()["sequence"] == sequence:
            struck = True
            fault()
        return opened.fabric.alive(victim) and begun[victim].step()

    steps = {rank: pending.step for rank, pending in begun.items()} | {victim: step}
    results = until(opened.fabric, steps, 1000.0)
    assert struck
    return {rank: fate for rank, fate in results.items() if opened.fabric.alive(rank)}


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    half=st.sampled_from([0, 1]),
    life=st.sampled_from([Life.DEAD, Life.STOPPED]),
    world=st.integers(2, 5),
    lanes=st.integers(1, 4),
)
def test_a_rank_that_goes_in_either_half_is_named(
    seed: int, half: int, life: Life, world: int, lanes: int
) -> None:
    opened = two_shot(world, seed, lanes=lanes, freeze_limit_s=2.0)
    expect(opened, Call("two-shot", 40, seed))
    victim = seed % world
    at = opened.groups[victim].state()["sequence"] + 1 + half

    def fault() -> None:
        opened.fabric.faults.life[victim] = life

    results = strike(opened, victim, at, fault, Call("two-shot", 64, seed))
    assert set(results) == set(range(world)) - {victim}
    root = root_of_all(opened, results)
    wanted = Kind.DEAD if life is Life.DEAD else Kind.FROZEN
    assert (root.kind, root.peer) == (wanted, victim)
    assert root.sequence - at in (-1, 0, 1)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    half=st.sampled_from([0, 1]),
    fault=st.sampled_from(["fail", "drop", "lose_flag"]),
)
def test_a_lane_that_breaks_in_either_half_is_named(seed: int, half: int, fault: str) -> None:
    opened = two_shot(4, seed, lanes=3, ack_limit_s=0.5)
    at = OPENING + 1 + half
    key = (seed % 4, (seed + 1) % 4, seed // 4 % 3)

    def strikes() -> None:
        getattr(opened.fabric.faults, fault).add(key)

    results = strike(opened, key[0], at, strikes, Call("two-shot", 64, seed))
    # What was delivered before the fault may have been all of the half that the rank was in.
    root = root_of_all(opened, results)
    assert root.kind is (Kind.LOST if fault == "lose_flag" else Kind.LANE)
    assert ({root.reporter, root.peer}, root.lane) == (set(key[:2]), key[2])


def test_a_rank_that_starts_late_is_waited_for_in_both_halves(open_fake: Open) -> None:
    opened = open_fake(3, max_two_shot_bytes=LIMIT)
    call = Call("two-shot", 32, 1)
    begun = {rank: call.begin(opened, rank) for rank in (0, 1)}
    with pytest.raises(TimeoutError):
        until(opened.fabric, {rank: begun[rank][0].step for rank in (0, 1)}, 3.0)
    begun[2] = call.begin(opened, 2)
    opened.fabric.faults.starved.add(1)
    with pytest.raises(TimeoutError):
        until(opened.fabric, {rank: begun[rank][0].step for rank in begun}, 3.0)
    opened.fabric.faults.starved.clear()
    results = until(opened.fabric, {rank: begun[rank][0].step for rank in begun}, 100.0)
    assert results == dict.fromkeys(range(3), True)


ODD = (
    (Call("one-shot", 32, 3), "all_reduce bf16 [256] of 512 bytes"),
    (Call("two-shot", 33, 3), "[264] of 528 bytes"),
    (Call("two-shot", 32, 5), "two_shot_reduce fp32"),
    (Call("scatter", 32, 3), "reduce_scatter_first bf16 [256] of 512 bytes"),
    (Call("gather", 32, 3), "gather_first"),
)


@pytest.mark.parametrize(("odd", "words"), ODD)
def test_another_operation_on_a_rank_is_an_error_that_names_both(
    open_fake: Open, odd: Call, words: str
) -> None:
    opened = open_fake(3, faults=Faults(hold_back=0.8), max_two_shot_bytes=LIMIT)
    usual = Call("two-shot", 32, 3)
    steps = {rank: (odd if rank == 1 else usual).begin(opened, rank)[0].step for rank in range(3)}
    root = root_of_all(opened, until(opened.fabric, steps, 1000.0))
    assert root.kind is Kind.MISMATCH
    assert "two_shot_reduce bf16 [256] of 512 bytes" in root.detail
    assert words in root.detail


def test_the_scattered_dimension_is_part_of_the_operation(open_fake: Open) -> None:
    opened = open_fake(2, max_two_shot_bytes=LIMIT)
    begun = [opened.groups[r].begin_reduce_scatter(torch.ones(8, 8), -r)[0].step for r in range(2)]
    root = root_of_all(opened, until(opened.fabric, dict(enumerate(begun)), 1000.0))
    assert root.kind is Kind.MISMATCH
    assert "reduce_scatter_first" in root.detail
    assert "reduce_scatter_last" in root.detail


def test_a_group_told_another_threshold_on_one_rank_is_refused() -> None:
    told = replace(SMALL, max_two_shot_bytes=LIMIT)
    fabric = Fabric(2)
    mine = [told, replace(told, two_shot_from=1024)]
    steps = {rank: opening(rank, 2, mine[rank], FakeTransport(fabric, rank)) for rank in range(2)}
    texts = {str(error) for error in run_together(fabric, steps).values()}
    assert texts == {"rank 1: settings.two_shot_from is 1024, rank 0 has None"}


def test_damage_to_a_chunk_slot_is_found_at_opening() -> None:
    class Damaging(Fabric):
        def _deliver(self, key: tuple[int, int, int]) -> None:
            super()._deliver(key)
            parcel = self._queues[key][0] if self._queues[key] else None
            layout = self.layout
            write = parcel.write if parcel and parcel.payload_done and key == (1, 0, 0) else None
            if write and layout and write.target >= layout.recv_chunk:
                self.memory[0][write.target + write.bytes - 3] = b"!"

    opened = open_on(2, 0, None, fabric=Damaging(2, 0), max_two_shot_bytes=LIMIT)
    assert opened.groups == {}
    text = str(opened.results[1])
    assert "rank 0: the pattern of rank 1 arrived damaged on lane 0 (PROBE_CHUNK)" in text
