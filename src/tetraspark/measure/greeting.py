"""What goes over one connection of a meeting: a greeting each way, then frames."""

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tetraspark.errors import Problem, RunError

MAGIC = b"tsmeet\r\n"
VERSION = 1
GREETING = struct.Struct("<8sIII")
FRAME = struct.Struct("<BI")
DATA, CAUSE = 0, 1
MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class Greeting:
    """Who is at this end: the first bytes that each side sends."""

    rank: int
    world: int
    version: int = VERSION

    def to_bytes(self) -> bytes:
        """Encode."""
        return GREETING.pack(MAGIC, self.version, self.rank, self.world)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Greeting":
        """Decode. Raises ValueError for the bytes of a stranger."""
        magic, version, rank, world = GREETING.unpack(data)
        if magic != MAGIC:
            raise ValueError(f"not a greeting: {data!r}")
        return cls(rank, world, version)


def send(to: socket.socket, data: bytes) -> None:
    """Send one frame of data. Raises OSError."""
    to.sendall(FRAME.pack(DATA, len(data)) + data)


def send_cause(to: socket.socket, problems: Sequence[Problem]) -> None:
    """Say why the meeting ends. Raises OSError."""
    data = json.dumps([problem.as_dict() for problem in problems]).encode()
    to.sendall(FRAME.pack(CAUSE, len(data)) + data)


def take(source: socket.socket) -> bytes:
    """Receive one frame. Raises RunError with the cause where one was sent, else OSError."""
    kind, length = FRAME.unpack(receive(source, FRAME.size))
    if kind not in (DATA, CAUSE) or length > MAX_BYTES:
        raise ConnectionError(f"a frame of kind {kind} and {length} bytes: not of a meeting")
    data = receive(source, length)
    if kind == CAUSE:
        raise RunError(*(Problem(**one) for one in json.loads(data)))
    return data


def receive(source: socket.socket, count: int) -> bytes:
    """Receive so many bytes. Raises OSError."""
    data = bytearray()
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return bytes(data)
