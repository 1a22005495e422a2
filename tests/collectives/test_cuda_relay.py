"""Kernels whose peers are behind a NIC, on the CPU: what they stage is posted by a relay."""

from pathlib import Path

import pytest
import torch

from tests.collectives.cuda_emulator import (
    BF16,
    SIZES,
    SPLIT,
    Emulated,
    Launch,
    emulator,
    reduction,
)
from tests.gpu.values import raw, summed, values
from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_state import DEADLINE
from tetraspark.collectives.flags import Op
from tetraspark.collectives.requests import probe_request

ONE, TWO = Algorithm
FORMS = pytest.mark.parametrize("form", [Form(), SPLIT], ids=["whole", "split"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("kernels"))


def queued(folder: Path, world: int, lanes: int, sequence: int = 0) -> Emulated:
    library = emulator(world, folder)
    return Emulated(library, world, lanes, pull=False, queued=True, sequence=sequence)


@FORMS
@pytest.mark.parametrize("algorithm", [ONE, TWO])
@pytest.mark.parametrize(("world", "lanes"), [(2, 4), (3, 1), (4, 2)])
def test_both_algorithms_have_the_bits_of_the_cpu(
    folder: Path, world: int, lanes: int, algorithm: Algorithm, form: Form
) -> None:
    ranks = queued(folder, world, lanes)
    for seed, nbytes in enumerate(SIZES):
        inputs = [values(seed * 8 + rank, (nbytes // 2,), BF16) for rank in range(world)]
        launches, outs = reduction(ranks, inputs, form, algorithm)
        ranks.run(launches, seed)
        assert not any(report.valid for report in ranks.reports)
        assert {raw(out) for out in outs} == {summed(inputs)}
    operations = len(SIZES) * (2 if algorithm is TWO else 1)
    assert [one.counts()["marks"] for one in ranks.relays] == [operations * lanes] * world


def test_operations_follow_each_other_across_the_wrap(folder: Path) -> None:
    ranks = queued(folder, 3, 2, sequence=(1 << 32) - 6)
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


@pytest.mark.parametrize("dim", [0, -1])
def test_shards_are_gathered(folder: Path, dim: int) -> None:
    ranks = queued(folder, 3, 2)
    shards = [values(rank, (5, 24), BF16) for rank in range(3)]
    requests, results = [], []
    for rank, shard in enumerate(shards):
        request, _, result = ranks.requests[rank].gather(shard, dim, None)
        requests.append([ranks.launch(rank, request)])
        results.append(result)
    ranks.run(requests)
    assert {raw(one) for one in results} == {raw(torch.cat(shards, dim))}


@FORMS
def test_a_reduce_scatter_is_a_part_of_the_sum(folder: Path, form: Form) -> None:
    ranks = queued(folder, 3, 2)
    inputs = [values(rank, (9, 64), BF16) for rank in range(3)]
    made = [own.scatter(one, 0) for own, one in zip(ranks.requests, inputs, strict=True)]
    ranks.run([[ranks.launch(rank, request, form)] for rank, (request, _, _) in enumerate(made)])
    assert raw(torch.cat([result for _, _, result in made])) == summed(inputs)


def test_the_probe_of_chunks_reaches_every_slot(folder: Path) -> None:
    ranks = queued(folder, 3, 2)
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


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("operation", ["reduce", "scatter"])
def test_equal_bytes_of_another_shape_are_told(folder: Path, operation: str, lanes: int) -> None:
    """The flag is the same: only the header, which came with the first stripe, differs."""
    ranks = queued(folder, 2, lanes)
    launches = []
    for rank, shape in enumerate([(8, 16), (16, 8)]):
        tensor = torch.ones(shape, dtype=BF16)
        own = ranks.requests[rank]
        made = own.reduce(tensor, tensor, ONE) if operation == "reduce" else own.scatter(tensor, 0)
        launches.append([ranks.launch(rank, made[0])])
    ranks.run(launches)
    assert [report.kind for report in ranks.reports] == [native.MISMATCH] * 2
    assert {report.stripe for report in ranks.reports} == {0}


def test_a_rank_without_a_relay_is_given_up(folder: Path) -> None:
    ranks = queued(folder, 2, 2)
    launches, outs = reduction(ranks, [torch.ones(64, dtype=BF16)] * 2, Form(), ONE)
    ranks.relays.pop()
    ranks.run(launches)
    assert ranks.reports[0].kind == DEADLINE
    assert bool((outs[0] == 1).all())
    assert bool((outs[1] == 2).all())
