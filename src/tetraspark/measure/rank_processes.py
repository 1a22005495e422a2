"""Processes of this machine, one a rank, that measure together: all of them bounded.

A rank is `COMMAND FOLDER RANK`. It reads `bench.json` from the folder, touches `alive-RANK` as it
gets on, may leave words in `progress`, and leaves its result, or its error under the key `error`,
in `result-RANK.json`.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError

SILENT_S = 180.0
"""No rank got on for so long: above every limit that the ranks have themselves."""
FOLLOW_S = 5.0
"""How long the others may take to say why they failed too."""
POLL_S = 0.05
TOLD = "bench.json"
PROGRESS = "progress"


def _unheard(words: str) -> None:
    """Take progress that nobody asked for."""


@dataclass(frozen=True)
class RankProcesses:
    """What is started: `world` ranks of a command, beside a rival that errors name.

    `environment`: what differs from this process's; None: a variable that is not set.
    """

    world: int
    command: Sequence[str]
    rival: str
    environment: Mapping[str, str | None] = field(default_factory=dict)

    def run(
        self, told: Mapping[str, Any], heard: Callable[[str], None] = _unheard
    ) -> list[dict[str, Any]]:
        """Start the ranks, wait for all; returns their results in rank order. Raises RunError.

        `told` is what `bench.json` says; `heard` is given the words of `progress` as they change.
        """
        with tempfile.TemporaryDirectory(prefix="tetraspark-bench-") as name:
            folder = Path(name)
            (folder / TOLD).write_text(json.dumps(told))
            with self._processes(folder) as processes:
                _wait(processes, folder, heard)
                results = [_result(folder, rank, one.poll()) for rank, one in enumerate(processes)]
        problems = [
            Problem(f"rank {rank}, beside {self.rival}", str(found["error"]), "a result")
            for rank, found in enumerate(results)
            if "error" in found
        ]
        if problems:
            raise RunError(*problems)
        return results

    @contextmanager
    def _processes(self, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Start the ranks; whatever happens, none of them stays behind."""
        told = {**os.environ, "OMP_NUM_THREADS": "1", **self.environment}
        env = {name: value for name, value in told.items() if value is not None}
        env.setdefault("GLOO_SOCKET_IFNAME", "lo")
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(self.world):
                with (folder / f"log-{rank}").open("wb") as log:
                    command = [*self.command, str(folder), str(rank)]
                    processes.append(
                        subprocess.Popen(
                            command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                        )
                    )
            yield processes
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()


def _wait(
    processes: Sequence[subprocess.Popen[bytes]], folder: Path, heard: Callable[[str], None]
) -> None:
    """Return when all have ended, some time after one failed, or when none moves any more."""
    end = time.monotonic() + SILENT_S
    failed, moved, said = False, 0.0, ""
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        if None not in codes:
            return
        newest = max((one.stat().st_mtime for one in folder.glob("alive-*")), default=0.0)
        if any(codes) and not failed:
            failed, end = True, time.monotonic() + FOLLOW_S
        elif newest != moved and not failed:
            moved, end = newest, time.monotonic() + SILENT_S
        words = _text(folder / PROGRESS)
        if words not in ("", said):
            said = words
            heard(words)
        time.sleep(POLL_S)


def _result(folder: Path, rank: int, code: int | None) -> dict[str, Any]:
    """Return what a rank left, or what is known of one that left nothing; None: it still runs."""
    path = folder / f"result-{rank}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    lines = _text(folder / f"log-{rank}").strip().splitlines()
    fate = "did not end and was killed" if code is None else f"ended with {code} and no result"
    return {"error": f"{fate}; last words: {lines[-1] if lines else 'none'}"}


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
