"""Ranks that meet over TCP: everyone gets everyone's bytes, and nobody waits for ever."""

import socket
import threading
from collections.abc import Sequence

import pytest

from tetraspark.measure.meeting import Meeting


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_everyone_gets_everything_in_order() -> None:
    port, got = free_port(), dict[int, list[Sequence[bytes]]]()

    def rank(number: int) -> None:
        with Meeting(number, 3, ("127.0.0.1", port), 10.0) as exchange:
            got[number] = [exchange(bytes([number]) * size) for size in (0, 1, 100_000)]

    threads = [threading.Thread(target=rank, args=(number,)) for number in (2, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    wanted = [[bytes([number]) * size for number in range(3)] for size in (0, 1, 100_000)]
    assert got == dict.fromkeys(range(3), wanted)


def test_a_rank_that_does_not_come_is_an_error() -> None:
    with pytest.raises(TimeoutError):
        Meeting(0, 2, ("127.0.0.1", free_port()), 0.2)
    with pytest.raises(ConnectionRefusedError):
        Meeting(1, 2, ("127.0.0.1", free_port()), 0.2)


def test_a_rank_that_leaves_is_an_error() -> None:
    port = free_port()

    def leave() -> None:
        Meeting(1, 2, ("127.0.0.1", port), 5.0).__exit__(None, None, None)

    thread = threading.Thread(target=leave)
    thread.start()
    with (
        Meeting(0, 2, ("127.0.0.1", port), 5.0) as exchange,
        pytest.raises(ConnectionError, match="a rank left the meeting"),
    ):
        exchange(b"here")
    thread.join(5)
