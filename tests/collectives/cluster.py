"""Starts real ranks as processes and talks to them."""

import multiprocessing
import os
import signal
import tempfile
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.collectives.ranks import MakeTransport, work
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import DIRECTORY
from tetraspark.collectives.shm_card import PREFIX

forkserver = multiprocessing.get_context("forkserver")
forkserver.set_forkserver_preload(["tetraspark.collectives.group"])

REPLY_LIMIT_S = 30


class Cluster:
    """`world` ranks of one group. `settings` for all; `odd` = (rank, settings) for one of them."""

    def __init__(
        self,
        world: int,
        settings: Settings | None = None,
        odd: tuple[int, Settings] | None = None,
        unable: int = -1,
        transport: MakeTransport | None = None,
        reply_limit_s: float = REPLY_LIMIT_S,
        context: ForkServerContext | ForkContext = forkserver,
    ) -> None:
        self._reply_limit_s = reply_limit_s
        self._folder = tempfile.TemporaryDirectory()
        self._pipes: list[Connection] = []
        self.processes: list[BaseProcess] = []
        for rank in range(world):
            here, there = context.Pipe()
            told = odd[1] if odd and odd[0] == rank else settings or Settings()
            vote = "unable" if rank == unable else ""
            arguments = (rank, world, Path(self._folder.name), told, vote, transport, there)
            process = context.Process(target=work, args=arguments, daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self._pipes.append(here)
        self.opened = [self.answer(rank) for rank in range(world)]

    def tell(self, rank: int, name: str, *arguments: Any) -> None:
        self._pipes[rank].send((name, arguments))

    def answer(self, rank: int) -> Any:
        if not self._pipes[rank].poll(self._reply_limit_s):
            raise TimeoutError(f"rank {rank} did not answer in {self._reply_limit_s} s")
        return self._pipes[rank].recv()

    def call(self, ranks: list[int], name: str, *arguments: Any) -> list[Any]:
        for rank in ranks:
            self.tell(rank, name, *arguments)
        return [self.answer(rank) for rank in ranks]

    def signal(self, rank: int, number: int) -> None:
        os.kill(self.processes[rank].pid or 0, number)

    def stop(self) -> None:
        for process in self.processes:
            if process.is_alive():
                os.kill(process.pid or 0, signal.SIGKILL)
        for process, pipe in zip(self.processes, self._pipes, strict=True):
            process.join(REPLY_LIMIT_S)
            process.close()
            pipe.close()
        self._folder.cleanup()

    def leftovers(self) -> list[str]:
        return [path.name for path in DIRECTORY.glob(f"{PREFIX}*")]
