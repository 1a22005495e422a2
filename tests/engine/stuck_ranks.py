"""Four ranks in the event loop; one stops before it has passed on what the engine shares.

Run as a program, with the rank that stops. It prints what the other ranks logged, as JSON, and
how often one of them told its parent to end, with SIGQUIT as the engine's scheduler does.
"""

import json
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed

from tests.engine.engine_group import EngineGroup
from tests.serving import eventually
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport
from tetraspark.engine import scheduler, watchdog
from tetraspark.engine.communicator import Communicator

WORLD = 4
SETTINGS = Settings(max_reduce_bytes=1 << 16, freeze_limit_s=1.0)
LIMIT_S = 40


def serve(rank: int, frozen: int, folder: str, parent: int) -> None:
    logging.basicConfig(filename=f"{folder}/{rank}.log", format="%(message)s")
    group = EngineGroup.meet(rank, WORLD, folder)
    scheduler.communicator = communicator = Communicator(group, SETTINGS, ShmTransport(rank))
    watchdog.watch_in_background(communicator)

    def event_loop(_: object) -> None:
        requests, hidden = torch.zeros(4), torch.zeros(64)
        for step in range(1000):
            if step == 3 and rank == frozen:
                os.kill(os.getpid(), signal.SIGSTOP)
            torch.distributed.broadcast(requests, 0)
            communicator.all_reduce(hidden)

    try:
        scheduler.around_event_loop(event_loop, None)
    except Exception as error:
        logging.error("%s: %s", type(error).__name__, error)
        os.kill(parent, signal.SIGQUIT)


def main(frozen: int) -> None:
    quits: list[int] = []
    signal.signal(signal.SIGQUIT, lambda number, _: quits.append(number))
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            spawn.Process(target=serve, args=(rank, frozen, folder, os.getpid()))
            for rank in range(WORLD)
        ]
        for one in ranks:
            one.start()
        logs = [Path(folder, f"{rank}.log") for rank in range(WORLD) if rank != frozen]
        eventually(
            lambda: all(log.exists() and "CollectiveError: " in log.read_text() for log in logs),
            LIMIT_S,
        )
        others = [one for rank, one in enumerate(ranks) if rank != frozen]
        for one in others:
            one.join(10)
        ended = all(one.exitcode is not None for one in others)
        for one in ranks:
            one.kill()
            one.join()
        words = {log.stem: log.read_text() if log.exists() else "" for log in logs}
    print(json.dumps({"words": words, "quits": len(quits), "ended": ended}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
