"""Ranks on different machines exchange bytes through the first of them, over one TCP connection."""

import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType

LENGTH = struct.Struct("<I")
MAX_BYTES = 16 << 20
RETRY_S = 0.2


class Meeting:
    """An all-gather of bytes; rank 0 listens at `address`, the others come to it.

    Not encrypted: for a network of one's own. Nothing secret goes over it. Every wait ends after
    `limit_s` with TimeoutError or another OSError.
    """

    def __init__(self, rank: int, world: int, address: tuple[str, int], limit_s: float) -> None:
        self._rank = rank
        self._world = world
        self._limit_s = limit_s
        self._others: dict[int, socket.socket] = {}
        self._first: socket.socket | None = None
        if rank == 0:
            self._listen(address)
        else:
            self._first = self._call(address)
            self._first.sendall(LENGTH.pack(rank))

    def _listen(self, address: tuple[str, int]) -> None:
        end = time.monotonic() + self._limit_s
        with socket.create_server(address) as server:
            while len(self._others) < self._world - 1:
                server.settimeout(max(0.01, end - time.monotonic()))
                other, _ = server.accept()
                other.settimeout(self._limit_s)
                (rank,) = LENGTH.unpack(_receive(other, LENGTH.size))
                if not 0 < rank < self._world or rank in self._others:
                    raise ConnectionError(f"rank {rank} came to a meeting of {self._world} twice")
                self._others[rank] = other

    def _call(self, address: tuple[str, int]) -> socket.socket:
        end = time.monotonic() + self._limit_s
        while True:
            try:
                return socket.create_connection(address, timeout=self._limit_s)
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(RETRY_S)

    def __call__(self, data: bytes) -> Sequence[bytes]:
        """Give this rank's bytes; return every rank's, by rank."""
        if self._first is not None:
            _send(self._first, data)
            return [_take(self._first) for _ in range(self._world)]
        everyone = [data, *(_take(self._others[rank]) for rank in range(1, self._world))]
        for other in self._others.values():
            for one in everyone:
                _send(other, one)
        return everyone

    def __enter__(self) -> "Meeting":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for one in [*self._others.values(), *([self._first] if self._first else [])]:
            one.close()


def _send(to: socket.socket, data: bytes) -> None:
    to.sendall(LENGTH.pack(len(data)) + data)


def _take(source: socket.socket) -> bytes:
    (length,) = LENGTH.unpack(_receive(source, LENGTH.size))
    if length > MAX_BYTES:
        raise ConnectionError(f"a message of {length} bytes: wanted at most {MAX_BYTES}")
    return _receive(source, length)


def _receive(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise ConnectionError("a rank left the meeting")
        data += part
    return data
