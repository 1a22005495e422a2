"""Rank 0 waits for the others: it listens, refuses strangers, and knows who has come."""

import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait

from tetraspark.errors import Problem, RunError
from tetraspark.measure.greeting import GREETING, VERSION, Greeting, send_cause
from tetraspark.measure.listener import listen
from tetraspark.measure.place import Place

GREETING_S = 2.0
"""A connection that has not greeted after so long is a stranger's."""

LINGER_S = 1.0
"""Given to a rank to read why the meeting ends, before its connection is closed."""


@dataclass(frozen=True)
class Guest:
    """A connection to rank 0, and the address it comes from."""

    link: socket.socket
    host: str


@dataclass
class _Arrival:
    guest: Guest
    until: float
    said: bytes = b""


class Reception:
    """Receives every other rank; `guests` are by rank, `strangers` the hosts that were refused.

    The constructor raises RunError, after every rank that is connected was told the cause.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._arrivals: dict[socket.socket, _Arrival] = {}
        self.guests: dict[int, Guest] = {}
        self.strangers: list[str] = []
        with ExitStack() as door:
            server = door.enter_context(listen(place))
            # A caller that is gone again must not leave rank 0 waiting in accept().
            server.setblocking(False)
            door.callback(self._close_arrivals)
            self._receive_all(server)

    def _receive_all(self, server: socket.socket) -> None:
        end = time.monotonic() + self._place.limit_s
        while len(self.guests) < self._place.world - 1:
            now = time.monotonic()
            if now >= end:
                self._refuse_all(self._missing())
            ranks = {guest.link: rank for rank, guest in self.guests.items()}
            until = min([end, *(one.until for one in self._arrivals.values())])
            for ready in wait([server, *self._arrivals, *ranks], max(0.0, until - now)):
                assert isinstance(ready, socket.socket)
                if ready is server:
                    self._accept(server)
                elif ready in self._arrivals:
                    self._listen_to(self._arrivals[ready])
                else:
                    # Nobody speaks before all are here: it has left, and may come again.
                    self.guests.pop(ranks[ready]).link.close()
            self._refuse_the_silent()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            link, address = server.accept()
            link.setblocking(False)
            self._arrivals[link] = _Arrival(
                Guest(link, str(address[0])), time.monotonic() + GREETING_S
            )

    def _listen_to(self, arrival: _Arrival) -> None:
        link = arrival.guest.link
        try:
            part = link.recv(GREETING.size - len(arrival.said))
        except BlockingIOError:
            return
        except OSError:
            part = b""
        arrival.said += part
        if not part:
            self._refuse(arrival)
        elif len(arrival.said) == GREETING.size:
            try:
                greeting = Greeting.from_bytes(arrival.said)
            except ValueError:
                self._refuse(arrival)
            else:
                self._admit(arrival, greeting)

    def _admit(self, arrival: _Arrival, greeting: Greeting) -> None:
        guest, place = arrival.guest, self._place
        guest.link.settimeout(place.limit_s)
        with suppress(OSError):
            guest.link.sendall(Greeting(0, place.world).to_bytes())
        problem = self._objection(greeting, guest)
        if problem is not None:
            self._refuse_all(problem)
        del self._arrivals[guest.link]
        self.guests[greeting.rank] = guest

    def _objection(self, greeting: Greeting, guest: Guest) -> Problem | None:
        place, rank = self._place, greeting.rank
        if greeting.version != VERSION:
            seen = f"{guest.host} speaks version {greeting.version}, rank 0 version {VERSION}"
            return place.problem(0, seen, "one version", "install one tetraspark on every node")
        if greeting.world != place.world:
            seen = (
                f"rank {rank} ({guest.host}) has --world {greeting.world}, "
                f"rank 0 has --world {place.world}"
            )
            return place.problem(0, seen, "one --world", f"there: {place.start(rank)}")
        if rank in self.guests:
            seen = f"rank {rank} came twice: from {self.guests[rank].host} and from {guest.host}"
            fix = "give each node a --rank of its own, then start every rank again"
            return place.problem(0, seen, "each rank once", fix)
        if not 0 < rank < place.world:
            seen = f"rank {rank} came from {guest.host}"
            return place.problem(0, seen, f"ranks 1 to {place.world - 1}", place.start(1))
        return None

    def _missing(self) -> Problem:
        place = self._place
        lacking = [rank for rank in range(1, place.world) if rank not in self.guests]
        came = ", ".join(f"{rank} ({guest.host})" for rank, guest in sorted(self.guests.items()))
        seen = (
            f"after {place.limit_s:g} s rank {', '.join(map(str, lacking))} had not come to "
            f"{place.where}; came: {came or 'nobody'}"
        )
        refused = [*self.strangers, *(one.guest.host for one in self._arrivals.values())]
        if refused:
            hosts = ", ".join(sorted(set(refused)))
            seen += f"; connections of strangers refused: {len(refused)} ({hosts})"
        starts = "\n".join(map(place.start, lacking))
        fix = f"start every rank within --limit seconds; those missing, each on its node:\n{starts}"
        return place.problem(0, seen, f"ranks 1 to {place.world - 1}", fix)

    def _refuse(self, arrival: _Arrival) -> None:
        del self._arrivals[arrival.guest.link]
        arrival.guest.link.close()
        self.strangers.append(arrival.guest.host)

    def _refuse_the_silent(self) -> None:
        now = time.monotonic()
        for arrival in [one for one in self._arrivals.values() if one.until <= now]:
            self._refuse(arrival)

    def _refuse_all(self, problem: Problem) -> None:
        greeted = [
            arrival.guest
            for arrival in self._arrivals.values()
            if len(arrival.said) == GREETING.size
        ]
        tell_all([*self.guests.values(), *greeted], [problem])
        raise RunError(problem)

    def _close_arrivals(self) -> None:
        for link in self._arrivals:
            link.close()


def tell_all(guests: Sequence[Guest], problems: Sequence[Problem]) -> None:
    """Send the cause to everyone who still listens, and close."""
    for guest in guests:
        with suppress(OSError):
            guest.link.settimeout(LINGER_S)
            send_cause(guest.link, problems)
            guest.link.shutdown(socket.SHUT_WR)
    for guest in guests:
        # Closed with bytes unread, a connection is reset, and the cause is lost on its way.
        with suppress(OSError), guest.link:
            while guest.link.recv(1 << 16):
                pass
