"""Kernels whose peers are behind a NIC, on the CPU: what the relays post, and what goes wrong."""

from pathlib import Path

import pytest
import torch

from tests.collectives.cuda_emulator import BF16, SIZES, Emulated, emulator, reduction
from tests.gpu.values import raw, values
from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_launch import Form
from tetraspark.collectives.cuda_state import DEADLINE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("kernels"))


def queued(folder: Path, world: int, lanes: int) -> Emulated:
    return Emulated(emulator(world, folder), world, lanes, "queued")


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_mark_a_stripe_and_a_write_a_peer(folder: Path, algorithm: Algorithm) -> None:
    ranks = queued(folder, 3, 2)
    for seed, nbytes in enumerate(SIZES):
        inputs = [values(seed * 8 + rank, (nbytes // 2,), BF16) for rank in range(3)]
        launches, outs = reduction(ranks, inputs, Form(), algorithm)
        ranks.run(launches, seed)
        assert len({raw(out) for out in outs}) == 1
    operations = len(SIZES) * (2 if algorithm is Algorithm.TWO_SHOT else 1)
    for rank, relay in enumerate(ranks.relays):
        assert relay.counts()["marks"] == operations * 2
        state = ranks.endpoints[rank].state
        writes = [sum(state.counters.writes[peer]) for peer in range(3)]
        assert writes == [0 if peer == rank else operations * 2 for peer in range(3)]
        assert ranks.endpoints[rank].progress.posted == operations


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


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("operation", ["reduce", "scatter"])
def test_equal_bytes_of_another_shape_are_told(folder: Path, operation: str, lanes: int) -> None:
    """The flag is the same: only the header, which came with the first stripe, differs."""
    ranks = queued(folder, 2, lanes)
    launches = []
    for rank, shape in enumerate([(8, 16), (16, 8)]):
        tensor = torch.ones(shape, dtype=BF16)
        own = ranks.requests[rank]
        one = Algorithm.ONE_SHOT
        made = own.reduce(tensor, tensor, one) if operation == "reduce" else own.scatter(tensor, 0)
        launches.append([ranks.launch(rank, made[0])])
    ranks.run(launches)
    assert [report.kind for report in ranks.reports] == [native.MISMATCH] * 2
    assert {report.stripe for report in ranks.reports} == {0}


def test_a_rank_without_a_relay_is_given_up(folder: Path) -> None:
    ranks = queued(folder, 2, 2)
    inputs = [torch.ones(64, dtype=BF16)] * 2
    launches, outs = reduction(ranks, inputs, Form(), Algorithm.ONE_SHOT)
    ranks.relays.pop()
    ranks.run(launches)
    assert ranks.reports[0].kind == DEADLINE
    assert bool((outs[0] == 1).all())
    assert bool((outs[1] == 2).all())
