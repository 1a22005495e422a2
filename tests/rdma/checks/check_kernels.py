"""The kernels' own source behind a relay, over real queue pairs: the bits of the CPU's group."""

from collections.abc import Callable

import torch

from tests.collectives.cluster import Cluster
from tests.collectives.oracle import raw, reduced, shard
from tests.rdma.network import over, switch_wiring
from tetraspark.collectives.chunks import chunk_rows
from tetraspark.collectives.settings import Settings

WORLD, LANES, SHAPE = 4, 2, (12, 344)
SEED = 3


def test_kernels_over_queue_pairs_have_the_bits_of_the_cpu(
    cluster: Callable[..., Cluster],
) -> None:
    wiring = switch_wiring(WORLD, LANES)
    told = Settings(
        max_reduce_bytes=1 << 15,
        max_gather_bytes=1 << 14,
        max_two_shot_bytes=1 << 15,
        lanes=LANES,
        routes=wiring.routes(),
        spins=0,
        yields=20,
    )
    ranks = cluster(WORLD, settings=told, transport=over(wiring))
    assert [answer[0] for answer in ranks.opened] == ["ok"] * WORLD, ranks.opened
    everyone = list(range(WORLD))
    shards = [shard(SEED, rank, SHAPE) for rank in everyone]
    whole = reduced(shards)
    rows = chunk_rows(SHAPE[0], whole.nbytes // SHAPE[0], WORLD)
    parts = [raw(part) for part in torch.split(whole, list(rows))]
    for rank, answer in enumerate(ranks.call(everyone, "kernels", SEED, SHAPE)):
        assert answer[0] == "ok", answer
        found = answer[1]
        assert found["sums"] == [raw(whole)] * 4
        assert found["part"] == parts[rank]
        assert found["parts"] == raw(torch.cat(shards, -1))
        # Two-shot is two operations; a scatter and a gather follow.
        assert found["operations"] == 2 + 2 * 2 + 2
        assert found["relay"]["marks"] == found["operations"] * LANES
