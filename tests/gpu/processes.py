"""Starts one process a rank, each on its GPU, and collects what they say."""

import multiprocessing
import os
import queue
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

LIMIT_S = 240


def exchange(data: bytes) -> Sequence[bytes]:
    """All-gather bytes over the group's CPU backend."""
    found: list[bytes] = [b""] * dist.get_world_size()
    dist.all_gather_object(found, data)
    return found


def _enter(
    work: Callable[..., Any],
    rank: int,
    world: int,
    where: str,
    backend: str,
    environment: dict[str, str],
    answers: Any,
    arguments: tuple[Any, ...],
) -> None:
    os.environ.update(environment)
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    try:
        dist.init_process_group(backend, init_method=f"file://{where}", rank=rank, world_size=world)
        answers.put((rank, "ok", work(rank, world, device, *arguments)))
    except BaseException as error:
        traceback.print_exc()
        answers.put((rank, "error", f"{type(error).__name__}: {error}"))
    answers.close()
    answers.join_thread()
    os._exit(0)  # a process group that lost a rank would wait for it here


class Team:
    """`world` processes that call `work(rank, world, device, *arguments)`."""

    def __init__(
        self,
        world: int,
        work: Callable[..., Any],
        *arguments: Any,
        backend: str = "gloo",
        environment: dict[str, str] | None = None,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory()
        self._answers = context.Queue()
        self.processes = [
            context.Process(
                target=_enter,
                args=(
                    work, rank, world, f"{self._folder.name}/store", backend,
                    environment or {}, self._answers, arguments,
                ),
            )
            for rank in range(world)
        ]  # fmt: skip
        for process in self.processes:
            process.start()

    def results(self, ranks: Sequence[int], limit_s: float = LIMIT_S) -> dict[int, Any]:
        """Return what these ranks returned. Raises RuntimeError if one failed or said nothing."""
        found: dict[int, Any] = {}
        while not set(ranks) <= set(found):
            try:
                rank, state, value = self._answers.get(timeout=limit_s)
            except queue.Empty:
                silent = sorted(set(ranks) - set(found))
                raise RuntimeError(f"ranks {silent} said nothing in {limit_s} s") from None
            if state == "error":
                raise RuntimeError(f"rank {rank}: {value}")
            found[rank] = value
        return found

    def stop(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            if process.is_alive():
                process.kill()
        for process in self.processes:
            process.join()
        self._folder.cleanup()


def run_team(world: int, work: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """Run to the end; returns every rank's value."""
    team = Team(world, work, *arguments, **options)
    try:
        found = team.results(range(world))
        return [found[rank] for rank in range(world)]
    finally:
        team.stop()
