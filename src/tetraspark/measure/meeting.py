"""Ranks on different machines exchange bytes through the first of them, over one TCP connection."""

import socket
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import NoReturn

from tetraspark.errors import RunError
from tetraspark.measure.greeting import GREETING, VERSION, Greeting, receive, send, take
from tetraspark.measure.place import Place
from tetraspark.measure.reception import Guest, Reception, tell_all

RETRY_S = 0.2
GRACE_S = 5.0
"""The others wait so much longer than rank 0, so that it is the one to say who is missing."""


class Meeting:
    """An all-gather of bytes; rank 0 listens at the place, the others come to it.

    Not encrypted: for a network of one's own. Nothing secret goes over it. Every wait ends after
    the place's limit. Every failure is RunError; what rank 0 finds it tells every rank that is
    connected. `strangers` are the hosts of connections that rank 0 refused.
    """

    def __init__(self, rank: int, place: Place) -> None:
        self._rank = rank
        self._place = place
        self._guests: dict[int, Guest] = {}
        self._first: socket.socket | None = None
        self.strangers: tuple[str, ...] = ()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        if self._rank == 0:
            reception = Reception(self._place)
            self._guests = reception.guests
            self.strangers = tuple(reception.strangers)
            self._answer([b""])
        else:
            self._first = self._come()
            self._hear(self._first)

    def __call__(self, data: bytes) -> Sequence[bytes]:
        """Give this rank's bytes; return every rank's, by rank."""
        if self._first is not None:
            try:
                send(self._first, data)
            except OSError:
                # Rank 0 has ended the meeting; why can still be read.
                self._hear(self._first)
            return [self._hear(self._first) for _ in range(self._place.world)]
        everyone = self._collect(data)
        self._answer(everyone)
        return everyone

    # ---- rank 0 ---------------------------------------------------------------------------------

    def _collect(self, data: bytes) -> list[bytes]:
        got, end = {0: data}, time.monotonic() + self._place.limit_s
        waiting = {guest.link: rank for rank, guest in self._guests.items()}
        while waiting:
            ready = wait(list(waiting), max(0.0, end - time.monotonic()))
            if not ready:
                self._lost(min(waiting.values()), f"said nothing for {self._place.limit_s:g} s")
            for link in ready:
                assert isinstance(link, socket.socket)
                rank = waiting.pop(link)
                try:
                    got[rank] = take(link)
                except OSError as error:
                    self._lost(rank, f"left the meeting ({error})")
        return [got[rank] for rank in range(self._place.world)]

    def _answer(self, frames: Sequence[bytes]) -> None:
        for rank, guest in self._guests.items():
            try:
                for frame in frames:
                    send(guest.link, frame)
            except OSError as error:
                self._lost(rank, f"left the meeting ({error})")

    def _lost(self, rank: int, what: str) -> NoReturn:
        host = self._guests[rank].host
        fix = f"read what the command printed at {host}, then start every rank again; rank {rank}: "
        problem = self._place.problem(
            0,
            f"rank {rank} ({host}) {what}",
            "every rank to the end",
            fix + self._place.start(rank),
        )
        tell_all(list(self._guests.values()), [problem])
        raise RunError(problem)

    # ---- the others -----------------------------------------------------------------------------

    def _come(self) -> socket.socket:
        """Connect and greet, again and again until the limit."""
        end = time.monotonic() + self._place.limit_s
        while True:
            try:
                link = socket.create_connection(
                    self._place.address, timeout=max(RETRY_S, end - time.monotonic())
                )
                return self._greet(link)
            except socket.gaierror as error:
                self._not_there(f"{self._place.address[0]} is unknown: {error.strerror}", error)
            except OSError as error:
                if time.monotonic() + RETRY_S > end:
                    self._not_there(self._why(error), error)
                time.sleep(RETRY_S)

    def _greet(self, link: socket.socket) -> socket.socket:
        place = self._place
        try:
            link.sendall(Greeting(self._rank, place.world).to_bytes())
            answer = Greeting.from_bytes(receive(link, GREETING.size))
            link.settimeout(place.limit_s + GRACE_S)
        except ValueError as error:
            link.close()
            fix = "another port in --meet, on every node"
            self._not_there(f"what listens at {place.where} is no rank 0", error, fix)
        except BaseException:
            link.close()
            raise
        if answer.version != VERSION:
            link.close()
            seen = f"rank 0 speaks version {answer.version}, this rank version {VERSION}"
            fix = "install one tetraspark on every node"
            raise RunError(place.problem(self._rank, seen, "one version", fix))
        return link

    def _why(self, error: OSError) -> str:
        after, where = f"after {self._place.limit_s:g} s ", self._place.where
        if isinstance(error, ConnectionRefusedError):
            return f"{after}nobody listens at {where}"
        return f"{after}no rank 0 at {where}: {error.strerror or error}"

    def _not_there(self, seen: str, error: Exception, fix: str = "") -> NoReturn:
        place = self._place
        fix = fix or f"start rank 0 there: {place.start(0)}"
        problem = place.problem(self._rank, seen, f"rank 0 at {place.where}", fix)
        raise RunError(problem) from error

    def _hear(self, first: socket.socket) -> bytes:
        try:
            return take(first)
        except OSError as error:
            place = self._place
            silent = f"said nothing for {place.limit_s + GRACE_S:g} s"
            what = silent if isinstance(error, TimeoutError) else f"left the meeting ({error})"
            seen = f"rank 0 ({place.where}) {what}"
            fix = f"read what the command printed there, then start every rank: {place.start(0)}"
            problem = place.problem(self._rank, seen, "every rank to the end", fix)
            raise RunError(problem) from error

    # ---- the end --------------------------------------------------------------------------------

    def __enter__(self) -> "Meeting":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave; the others are told no cause."""
        links = [guest.link for guest in self._guests.values()]
        for one in [*links, *([self._first] if self._first else [])]:
            one.close()
