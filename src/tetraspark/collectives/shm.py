"""Same host: every rank maps every region as POSIX shared memory."""

import ctypes
import mmap
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.layout import PROGRESS, Layout
from tetraspark.collectives.liveness import Life, Process, life_of, this_process
from tetraspark.collectives.native import Progress
from tetraspark.collectives.shm_card import PREFIX, Card
from tetraspark.collectives.transport import Finding, Seen

DIRECTORY = Path("/dev/shm")


def name_of(process: Process, number: int) -> str:
    """Return a region's file name: its owner can be told from it, for the sweep."""
    return f"{PREFIX}{process.pid}-{process.start}-{number}"


def sweep(directory: Path, own: Process) -> list[str]:
    """Remove this user's regions whose owner died before it could; return their names."""
    removed = []
    for path in directory.glob(f"{PREFIX}*-*-*"):
        pid, start = path.name.removeprefix(PREFIX).split("-")[:2]
        if not (pid.isdigit() and start.isdigit()) or path.lstat().st_uid != os.getuid():
            continue
        if life_of(Process(int(pid), int(start), own.namespace), own.namespace) is Life.DEAD:
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return removed


class ShmTransport:
    """Shared memory between processes of one user on one host; modes `pull` and `push`.

    `queued`: as if peers' regions were behind a NIC, copied into by a C function in its place.
    Files are 0600 under /dev/shm and are unlinked in `seal`, so that a later crash of any rank
    leaves nothing there.
    """

    def __init__(
        self, rank: int, *, pull: bool = True, queued: bool = False, directory: Path = DIRECTORY
    ) -> None:
        if pull and queued:
            raise ValueError("what is queued is pushed: pull and queued exclude each other")
        self.name = "shm-queued" if queued else "shm"
        self.direct = not queued
        self.pull = pull
        self._rank = rank
        self._directory = directory
        self._process: Process | None = None
        self._path: Path | None = None
        self._maps: list[mmap.mmap] = []
        self._bases: list[int] = []
        self._peers: list[Process] = []
        self._progress: list[Progress] = []
        self._lanes = 0
        self._layout: Layout | None = None
        self._endpoint: Endpoint | None = None

    def open(self, layout: Layout) -> bytes:
        """Create the own region. Raises OSError when /dev/shm lacks room."""
        own = self._process = this_process()
        sweep(self._directory, own)
        self._layout = layout
        self._lanes = layout.lanes
        number = 0
        while self._path is None:
            path = self._directory / name_of(own, number)
            with suppress(FileExistsError):
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                self._path = path
            number += 1
        try:
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, layout.total)
            # Pages are taken now: later, a full tmpfs would kill the rank with SIGBUS.
            os.posix_fallocate(descriptor, 0, layout.recv if self.pull else layout.total)
        finally:
            os.close(descriptor)
        return Card(self._path.name, self.pull, **asdict(own)).to_bytes()

    def connect(self, cards: Sequence[bytes]) -> list[int]:
        """Map every region. Raises OSError or ValueError when one is not what its card says."""
        for card in map(Card.from_bytes, cards):
            self._peers.append(Process(card.pid, card.start, card.namespace))
            self._map(self._directory / card.name)
        self._progress = [Progress.from_address(base + PROGRESS) for base in self._bases]
        return self._bases

    def _map(self, path: Path) -> None:
        assert self._layout is not None
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o600:
                raise ValueError(f"{path} is not a private file of user {os.getuid()}")
            if found.st_size != self._layout.total:
                raise ValueError(f"{path} has {found.st_size} bytes, not {self._layout.total}")
            memory = mmap.mmap(descriptor, self._layout.total)
        finally:
            os.close(descriptor)
        self._maps.append(memory)
        self._bases.append(ctypes.addressof(ctypes.c_char.from_buffer(memory)))

    def seal(self) -> None:
        """Unlink the own region: every rank has mapped it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def attach(self, endpoint: Endpoint) -> None:
        """Use this endpoint's proxy to leave records, and copy what it queues."""
        self._endpoint = endpoint
        if not self.direct:
            endpoint.copy_queued()

    def now(self) -> float:
        """Return the monotonic clock."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def seen(self, peer: int) -> Seen | None:
        """Read the peer's own progress line."""
        line = self._progress[peer]
        posted = line.posted
        # A store needs no acknowledgement: what is posted has arrived.
        acked = (posted,) * self._lanes
        return Seen(line.doorbell, posted, line.completed, line.phase, acked)

    def life(self, peer: int) -> Life:
        """Ask /proc."""
        assert self._process is not None
        return life_of(self._peers[peer], self._process.namespace)

    def finding(self) -> Finding | None:
        """Nothing of it breaks alone."""
        return None

    def details(self) -> dict[str, Any]:
        """Nothing more than every transport has."""
        return {}

    def leave_record(self, data: bytes) -> None:
        """Store the record in every region, the own one included."""
        assert self._layout is not None
        assert self._endpoint is not None
        offset = self._layout.record_at(self._rank)
        for rank in range(self._layout.world):
            self._endpoint.leave_record(rank, offset, data, alarm=rank != self._rank)

    def close(self) -> None:
        """Unlink and unmap."""
        self.seal()
        self._progress.clear()
        self._bases.clear()
        for memory in self._maps:
            # A view that is still held keeps its mapping until it goes.
            with suppress(BufferError):
                memory.close()
        self._maps.clear()
        self._endpoint = None
