"""One real rank: opens a group, then does what it is told over a pipe."""

import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tests.collectives.oracle import raw, shard
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.group import Group
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.transport import Transport

EXCHANGE_LIMIT_S = 60


class FolderExchange:
    """An all-gather of bytes through files."""

    def __init__(self, folder: Path, rank: int, world: int) -> None:
        self._folder, self._rank, self._world, self._round = folder, rank, world, 0

    def __call__(self, data: bytes) -> list[bytes]:
        self._round += 1
        draft = self._folder / f"draft-{self._rank}"
        draft.write_bytes(data)
        draft.rename(self._folder / f"{self._round}-{self._rank}")
        paths = [self._folder / f"{self._round}-{rank}" for rank in range(self._world)]
        end = time.monotonic() + EXCHANGE_LIMIT_S
        while not all(path.exists() for path in paths):
            if time.monotonic() > end:
                raise TimeoutError("a rank did not take part in the exchange")
            time.sleep(0.002)
        return [path.read_bytes() for path in paths]


def reduce(
    group: Group,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    seed: int,
    where: str,
    algorithm: Algorithm | None = None,
) -> bytes:
    tensor = shard(seed, group.rank, shape, dtype)
    out = {"new": None, "in": tensor, "out": torch.empty_like(tensor)}[where]
    return raw(group.all_reduce(tensor, out, algorithm))


def scatter(group: Group, shape: tuple[int, ...], dtype: torch.dtype, seed: int, dim: int) -> bytes:
    return raw(group.reduce_scatter(shard(seed, group.rank, shape, dtype), dim))


def gather(
    group: Group, shape: tuple[int, ...], dtype: torch.dtype, seed: int, dim: int, sizes: Any
) -> bytes:
    return raw(group.all_gather(shard(seed, group.rank, shape, dtype), dim, sizes))


def many(group: Group, count: int, shape: tuple[int, ...]) -> bytes:
    """Reduce `count` times, each from the last result; return the last."""
    tensor = shard(1, group.rank, shape, torch.float32)
    for _ in range(count):
        tensor = group.all_reduce(tensor) * 0.25 + group.rank
    return raw(group.all_reduce(tensor))


def mixed(group: Group, count: int, shape: tuple[int, ...]) -> bytes:
    """As `many`, one-shot and two-shot by turns, with a reduce-scatter before every fifth."""
    tensor = shard(1, group.rank, shape, torch.float32)
    for step in range(count):
        if step % 5 == 0:
            group.reduce_scatter(tensor)
        way = Algorithm.TWO_SHOT if step % 3 else Algorithm.ONE_SHOT
        tensor = group.all_reduce(tensor, None, way) * 0.25 + group.rank
    return raw(group.all_reduce(tensor, None, Algorithm.TWO_SHOT))


def burned(group: Group, shape: tuple[int, ...]) -> float:
    """Return the CPU seconds that one reduction took this rank."""
    before = time.process_time()
    group.all_reduce(shard(1, group.rank, shape))
    return time.process_time() - before


def check(group: Group, deadline_s: float, ready: bool) -> None:
    group.check(deadline_s, lambda: ready)


def kernels(group: Group, seed: int, shape: tuple[int, ...]) -> dict[str, Any]:
    """Let the emulated kernels take the group over; in the VM, where their library is."""
    from tests.rdma.kernels import run

    return run(group, seed, shape)


COMMANDS: dict[str, Callable[..., Any]] = {
    "reduce": reduce,
    "scatter": scatter,
    "gather": gather,
    "many": many,
    "mixed": mixed,
    "burned": burned,
    "check": check,
    "kernels": kernels,
    "state": Group.state,
    "close": Group.close,
}


MakeTransport = Callable[[int], Transport]
"""From a rank to its transport; must be picklable."""


def work(
    rank: int,
    world: int,
    folder: Path,
    settings: Settings,
    vote: str,
    transport: MakeTransport | None,
    pipe: Connection,
) -> None:
    """Serve commands until told to leave. `vote`: "unable" makes this rank unable to take part."""
    if vote == "unable":
        os.environ["CC"] = "no-such-compiler"
    try:
        exchange = FolderExchange(folder, rank, world)
        group = Group.open(rank, world, exchange, settings, transport and transport(rank))
    except Exception as error:
        pipe.send(("error", type(error).__name__, str(error), 0.0))
        return
    pipe.send(("ok", os.getpid()))
    while True:
        name, arguments = pipe.recv()
        if name == "leave":
            return
        start = time.monotonic()
        try:
            pipe.send(("ok", COMMANDS[name](group, *arguments)))
        except CollectiveError as error:
            root = error.root.as_dict()
            pipe.send(("error", "CollectiveError", root, time.monotonic() - start))
        except (Exception, KeyboardInterrupt) as error:
            pipe.send(("error", type(error).__name__, str(error), 0.0))
