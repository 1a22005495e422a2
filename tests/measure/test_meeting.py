"""Ranks that meet over TCP: all get everyone's bytes, and are told the cause of a failure."""

import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from tetraspark.errors import Problem, RunError
from tetraspark.measure import meeting, reception
from tetraspark.measure.greeting import GREETING, Greeting, receive
from tetraspark.measure.meeting import Meeting
from tetraspark.measure.place import Place


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start(rank: int) -> str:
    return f"begin --rank {rank}"


def place(world: int, limit_s: float = 10.0, port: int = 0, host: str = "127.0.0.1") -> Place:
    return Place(world, (host, port or free_port()), limit_s, "spark", start)


def refusal(rank: int, where: Place) -> Problem:
    with pytest.raises(RunError) as caught, Meeting(rank, where):
        pass
    (problem,) = caught.value.problems
    assert problem.wanted and problem.fix
    return problem


class Ranks:
    """Ranks in threads, each with what it got or raised."""

    def __init__(self) -> None:
        self.results: dict[str, object] = {}
        self._threads: list[threading.Thread] = []

    def begin(
        self,
        name: str,
        rank: int,
        where: Place,
        act: Callable[[Meeting], object] = lambda meeting: None,
    ) -> None:
        def body() -> None:
            try:
                with Meeting(rank, where) as meeting:
                    self.results[name] = act(meeting)
            except RunError as error:
                self.results[name] = error.problems

        self._threads.append(threading.Thread(target=body))
        self._threads[-1].start()

    def end(self) -> dict[str, object]:
        for thread in self._threads:
            thread.join(20)
        return self.results

    def cause(self) -> Problem:
        """Return the one problem that every rank was told."""
        told = set(self.end().values())
        assert len(told) == 1, told
        (problems,) = told
        assert isinstance(problems, tuple) and len(problems) == 1
        assert isinstance(problems[0], Problem) and problems[0].fix
        return problems[0]


def connect(where: Place) -> socket.socket:
    for _ in range(100):
        with suppress(ConnectionRefusedError):
            return socket.create_connection(where.address, timeout=5)
        time.sleep(0.02)
    raise AssertionError("nobody listens")


def test_everyone_gets_everything_in_order() -> None:
    where, ranks = place(3), Ranks()

    def act(rank: int) -> Callable[[Meeting], list[Sequence[bytes]]]:
        return lambda meeting: [meeting(bytes([rank]) * size) for size in (0, 1, 100_000)]

    for rank in (2, 1, 0):
        ranks.begin(str(rank), rank, where, act(rank))
    wanted = [[bytes([rank]) * size for rank in range(3)] for size in (0, 1, 100_000)]
    assert ranks.end() == {str(rank): wanted for rank in range(3)}


def test_strangers_are_refused_and_counted_while_waiting_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Longer than the ranks wait: a silent connection that held them up would end the meeting.
    monkeypatch.setattr(reception, "GREETING_S", 60.0)
    where, ranks = place(2), Ranks()
    ranks.begin("0", 0, where, lambda meeting: (meeting(b"a"), meeting.strangers))
    with connect(where) as silent, connect(where) as web, connect(where) as gone:
        web.sendall(b"GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n")
        gone.close()
        with suppress(ConnectionResetError):
            assert web.recv(1) == b""
        ranks.begin("1", 1, where, lambda meeting: meeting(b"b"))
        results = ranks.end()
        assert results["1"] == [b"a", b"b"]
        assert results["0"] == ([b"a", b"b"], ("127.0.0.1", "127.0.0.1"))
        assert silent.recv(1) == b""


def test_a_connection_that_says_nothing_is_refused_while_waiting_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reception, "GREETING_S", 0.1)
    where, ranks = place(2), Ranks()
    ranks.begin("0", 0, where, lambda meeting: meeting.strangers)
    with connect(where) as silent, connect(where) as slow:
        slow.sendall(b"tsmeet")
        assert silent.recv(1) == b"" == slow.recv(1)
    ranks.begin("1", 1, where)
    assert ranks.end()["0"] == ("127.0.0.1", "127.0.0.1")


def test_who_is_missing_is_told_to_all_who_came() -> None:
    where, ranks = place(4, limit_s=1.0), Ranks()
    ranks.begin("0", 0, where)
    ranks.begin("1", 1, where)
    with connect(where) as stranger:
        stranger.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n")
        cause = ranks.cause()
    assert cause.where == "node spark, rank 0"
    assert cause.seen == (
        f"after 1 s rank 2, 3 had not come to {where.where}; came: 1 (127.0.0.1); "
        "connections of strangers refused: 1 (127.0.0.1)"
    )
    assert cause.fix.endswith("each on its node:\nbegin --rank 2\nbegin --rank 3")


def test_without_rank_0_nobody_listens() -> None:
    where = place(2, limit_s=0.3)
    problem = refusal(1, where)
    assert problem.seen == f"after 0.3 s nobody listens at {where.where}"
    assert problem.fix == "start rank 0 there: begin --rank 0"


def test_a_rank_taken_twice_is_told_to_all_with_both_addresses() -> None:
    where, ranks = place(4, host="0.0.0.0"), Ranks()
    ranks.begin("0", 0, where)
    for number in (2, 3):
        ranks.begin(f"{number}", 1, replace(where, address=(f"127.0.0.{number}", where.address[1])))
    cause = ranks.cause()
    assert cause.seen.startswith("rank 1 came twice: from 127.0.0.")
    assert cause.seen.count("127.0.0.") == 2
    assert len(ranks.results) == 3


def test_worlds_that_differ_are_told_with_both() -> None:
    where, ranks = place(3), Ranks()
    ranks.begin("0", 0, where)
    ranks.begin("1", 1, replace(where, world=4))
    assert ranks.cause().seen == "rank 1 (127.0.0.1) has --world 4, rank 0 has --world 3"


def test_a_rank_of_another_version() -> None:
    where, ranks = place(2), Ranks()
    ranks.begin("0", 0, where)
    with connect(where) as other:
        other.sendall(Greeting(1, 2, version=9).to_bytes())
        assert Greeting.from_bytes(receive(other, GREETING.size)) == Greeting(0, 2)
    assert ranks.cause().seen == "127.0.0.1 speaks version 9, rank 0 version 1"


def test_a_rank_that_left_before_the_start_may_come_again() -> None:
    where, ranks = place(3), Ranks()
    ranks.begin("0", 0, where, lambda meeting: meeting(b"0"))
    with connect(where) as early:
        early.sendall(Greeting(1, 3).to_bytes())
        receive(early, GREETING.size)
    for rank in (1, 2):
        ranks.begin(str(rank), rank, where, lambda meeting: meeting(b"x"))
    assert ranks.end() == {rank: [b"0", b"x", b"x"] for rank in "012"}


def die(where: Place) -> None:
    """Come, send half a frame, and be gone."""
    meeting = Meeting(2, where)
    assert meeting._first is not None
    meeting._first.sendall(b"\0\xff\0\0\0half")
    os._exit(1)


def test_a_rank_that_dies_in_an_exchange_is_named_to_all() -> None:
    where, ranks = place(4), Ranks()
    child = multiprocessing.get_context("spawn").Process(target=die, args=(where,))
    child.start()
    for rank in (0, 1, 3):
        ranks.begin(str(rank), rank, where, lambda meeting: meeting(b"here"))
    cause = ranks.cause()
    child.join(5)
    assert len(ranks.results) == 3
    assert cause.seen == "rank 2 (127.0.0.1) left the meeting (the connection was closed)"
    assert cause.fix.endswith("rank 2: begin --rank 2")


def test_a_rank_0_that_leaves_is_named() -> None:
    where, ranks = place(2), Ranks()
    ranks.begin("0", 0, where)
    ranks.begin("1", 1, where, lambda meeting: meeting(b"here"))
    problems = ranks.end()["1"]
    assert isinstance(problems, tuple)
    assert problems[0].where == "node spark, rank 1"
    assert problems[0].seen.startswith(f"rank 0 ({where.where}) left the meeting")


def test_a_silent_rank_0_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "GRACE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            with other.accept()[0] as link:
                link.sendall(Greeting(0, 2).to_bytes())
                while link.recv(100):
                    pass

        thread = threading.Thread(target=greet)
        thread.start()
        where = place(2, limit_s=0.3, port=other.getsockname()[1])
        assert refusal(1, where).seen == f"rank 0 ({where.where}) said nothing for 0.4 s"
        thread.join(5)


def test_a_silent_rank_is_named_after_the_limit() -> None:
    where, ranks = place(3, limit_s=1.0), Ranks()
    for rank in (0, 2):
        ranks.begin(str(rank), rank, where, lambda meeting: meeting(b"here"))

    def late(meeting: Meeting) -> object:
        time.sleep(1.5)
        return meeting(b"late")

    ranks.begin("1", 1, where, late)
    assert ranks.cause().seen == "rank 1 (127.0.0.1) said nothing for 1 s"


def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = place(2, port=other.getsockname()[1])
        problem = refusal(0, where)
    assert problem.seen == f"{where.where} is in use"
    assert f"sport = :{where.address[1]}" in problem.fix


@pytest.mark.parametrize(
    ("host", "seen"),
    [("192.0.2.1", "192.0.2.1 is no address of this machine"), ("no.invalid", "cannot listen at")],
)
def test_an_address_that_is_not_of_this_machine(host: str, seen: str) -> None:
    problem = refusal(0, place(2, host=host))
    assert problem.seen.startswith(seen)
    assert problem.fix == "ip -brief address"


def test_a_host_that_is_unknown() -> None:
    assert refusal(1, place(2, host="no.invalid")).seen.startswith("no.invalid is unknown: ")


@pytest.mark.parametrize(
    ("answer", "seen"),
    [(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", "is no rank 0"), (b"", "no rank 0 at")],
)
def test_a_listener_that_is_no_rank_0(answer: bytes, seen: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def talk() -> None:
            with suppress(OSError):
                while True:
                    with other.accept()[0] as link:
                        link.sendall(answer)
                        link.recv(GREETING.size)

        thread = threading.Thread(target=talk)
        thread.start()
        problem = refusal(1, place(2, limit_s=0.5, port=other.getsockname()[1]))
        other.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    assert seen in problem.seen
