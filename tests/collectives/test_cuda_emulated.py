"""The kernels' source run on the CPU: bits, places, both algorithms, and giving up."""

from pathlib import Path

import pytest
import torch

from tests.collectives.cuda_emulator import (
    BF16,
    SIZES,
    SPLIT,
    Emulated,
    Launch,
    Way,
    emulator,
    reduction,
)
from tests.gpu.values import raw, summed, values
from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_state import ABORTED, DEADLINE
from tetraspark.collectives.flags import Op
from tetraspark.collectives.requests import probe_request

ONE, TWO = Algorithm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("form", [Form(), SPLIT], ids=["whole", "split"])
@pytest.mark.parametrize("algorithm", [ONE, TWO])
@pytest.mark.parametrize(
    ("world", "lanes", "way"),
    [
        (2, 4, "pull"), (3, 2, "pull"), (3, 1, "push"), (4, 3, "push"),
        (2, 4, "queued"), (3, 1, "queued"), (4, 2, "queued"),
    ],
)  # fmt: skip
def test_both_algorithms_have_the_bits_of_the_cpu(
    folder: Path, world: int, lanes: int, way: Way, algorithm: Algorithm, form: Form
) -> None:
    ranks = Emulated(emulator(world, folder), world, lanes, way)
    for seed, nbytes in enumerate(SIZES):
        for dtype in (BF16, torch.float16, torch.float32)[: 1 + (seed < 2) * 2]:
            shape = (nbytes // dtype.itemsize,)
            inputs = [values(seed * 8 + rank, shape, dtype) for rank in range(world)]
            launches, outs = reduction(ranks, inputs, form, algorithm)
            ranks.run(launches, seed)
            assert not any(report.valid for report in ranks.reports)
            assert {raw(out) for out in outs} == {summed(inputs)}


@pytest.mark.parametrize("way", ["pull", "push", "queued"])
def test_operations_follow_each_other_across_the_wrap(folder: Path, way: Way) -> None:
    """A queue of mixed operations, ranks at different speeds, both parities, no slot too early."""
    ranks = Emulated(emulator(3, folder), 3, 2, way, sequence=(1 << 32) - 6)
    queue: list[list[Launch]] = [[], [], []]
    wanted, seen = [], []
    for turn in range(8):
        algorithm, form = (ONE, TWO)[turn % 2], (Form(), SPLIT)[turn // 2 % 2]
        inputs = [values(turn * 4 + rank, (1544,), BF16) for rank in range(3)]
        launches, outs = reduction(ranks, inputs, form, algorithm)
        for own, more in zip(queue, launches, strict=True):
            own += more
        wanted.append(summed(inputs))
        seen.append(outs)
    ranks.run(queue, 7)
    for bits, outs in zip(wanted, seen, strict=True):
        assert {raw(out) for out in outs} == {bits}
    assert {state.sequence for state in ranks.states} == {8}


@pytest.mark.parametrize(("shape", "dim"), [((9, 64), 0), ((5, 48), -1), ((1, 8), 0), ((24,), 0)])
@pytest.mark.parametrize("form", [Form(), SPLIT], ids=["whole", "split"])
@pytest.mark.parametrize("way", ["pull", "queued"])
def test_a_reduce_scatter_is_a_part_of_the_sum(
    folder: Path, shape: tuple[int, ...], dim: int, form: Form, way: Way
) -> None:
    ranks = Emulated(emulator(3, folder), 3, 2, way)
    inputs = [values(rank, shape, BF16) for rank in range(3)]
    made = [own.scatter(one, dim) for own, one in zip(ranks.requests, inputs, strict=True)]
    ranks.run([[ranks.launch(rank, request, form)] for rank, (request, _, _) in enumerate(made)])
    whole = torch.frombuffer(bytearray(summed(inputs)), dtype=BF16).reshape(shape)
    parts = torch.cat([result for _, _, result in made])
    assert raw(parts) == raw(whole.movedim(dim, 0))


def test_ranks_of_different_algorithms_are_told(folder: Path) -> None:
    ranks = Emulated(emulator(2, folder), 2, 2, "pull")
    inputs = [torch.ones(64, dtype=BF16)] * 2
    one, _ = reduction(ranks, inputs, Form(), ONE)
    two, outs = reduction(ranks, inputs, Form(), TWO)
    ranks.run([one[0], two[1]])
    assert [report.kind for report in ranks.reports] == [native.MISMATCH] * 2
    assert all(state.poison and state.sequence == 0 for state in ranks.states)
    assert bool((outs[1] == 1).all())


@pytest.mark.parametrize("half", [0, 1])
def test_two_shot_ends_where_a_rank_leaves_in_either_half(folder: Path, half: int) -> None:
    ranks = Emulated(emulator(3, folder), 3, 2, "pull")
    launches, _ = reduction(ranks, [torch.ones(64, dtype=BF16)] * 3, Form(), TWO)
    launches[2] = launches[2][:half]
    ranks.run(launches)
    assert [report.kind for report in ranks.reports] == [DEADLINE, DEADLINE, 0]
    assert [report.peer for report in ranks.reports[:2]] == [2, 2]
    assert [state.sequence for state in ranks.states] == [half] * 3


@pytest.mark.parametrize("form", [Form(), SPLIT], ids=["whole", "split"])
def test_an_abort_ends_both_launches(folder: Path, form: Form) -> None:
    ranks = Emulated(emulator(2, folder), 2, 2, "pull")
    launches, outs = reduction(ranks, [torch.ones(64, dtype=BF16)] * 2, form, TWO)
    ranks.abort(0)
    ranks.run([launches[0], []])
    assert ranks.reports[0].kind == ABORTED
    assert bool((outs[0] == 1).all())


@pytest.mark.parametrize("way", ["pull", "push", "queued"])
def test_the_probe_of_chunks_reaches_every_slot(folder: Path, way: Way) -> None:
    ranks = Emulated(emulator(3, folder), 3, 2, way)
    nbytes = ranks.layout.chunk_bytes
    sent = [torch.randint(0, 255, (3 * nbytes,), dtype=torch.uint8) for _ in range(3)]
    seen = [torch.zeros(3 * nbytes, dtype=torch.uint8) for _ in range(3)]
    launches = []
    for rank in range(3):
        request = probe_request(Op.PROBE_CHUNK, 3, nbytes)
        request.input, request.output = sent[rank].data_ptr(), seen[rank].data_ptr()
        launches.append([ranks.launch(rank, request)])
    ranks.run(launches)
    for rank in range(3):
        wanted = [one[rank * nbytes : (rank + 1) * nbytes] for one in sent]
        assert torch.equal(seen[rank], torch.cat(wanted))
