"""The sidecar's own small server: /metrics, the page, /state.json and /healthz; read-only."""

import contextlib
import errno
import ipaddress
import logging
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.port import owner_of
from tetraspark.watch.board import Board
from tetraspark.watch.http_handler import Handler
from tetraspark.watch.http_health import health_of
from tetraspark.watch.metrics import registry
from tetraspark.watch.page.lane_rates import LaneRates
from tetraspark.watch.page.render import Shown

LARGEST_PORT = 65535
STALE_SECONDS = 60.0
"""Age from which an observation says nothing about now: a look with its canary takes far less."""
CONNECTIONS = 32
"""Served at a time; one more is closed at once."""
log = logging.getLogger(__name__)


class Server(socketserver.ThreadingTCPServer):
    """Serves one board until it is closed; a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, board: Board, host: str, port: int, stale_after: float) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.board = board
        self.registry: CollectorRegistry = registry(board)
        self.loopback = is_loopback(host)
        self._stale_after = stale_after
        self._rates = LaneRates()
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((host, port), Handler)
        self._thread = threading.Thread(target=self.serve_forever, name="page", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on, where 0 was asked for too."""
        return int(self.server_address[1])

    @property
    def shown(self) -> Shown:
        """What there is to show now."""
        seen, now = self.board.latest(), time.time()
        return Shown(seen, health_of(seen, now, self._stale_after), self._rates.look(seen), now)

    def close(self) -> None:
        """Stop listening and free the port; a second time does nothing."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def service_actions(self) -> None:
        """Look at each observation, also while nobody asks: a rate needs the one before."""
        self._rates.look(self.board.latest())

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Serve a connection in a thread of its own, or close it when there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a fault of ours; a client that left is none."""
        if not isinstance(sys.exc_info()[1], OSError):
            log.exception("a request of the status page failed")


def serve_page(
    board: Board,
    host: str,
    port: int,
    *,
    open_to_others: bool = False,
    stale_after: float = STALE_SECONDS,
) -> Server:
    """Serve a board's line at host and port (0: a free one) until the server is closed.

    `host` is loopback unless `open_to_others`: there is no password, and whoever can connect sees
    all. Raises UsageError for a host or port that is none, RunError where it cannot listen.
    """
    _refuse_place(host, port, open_to_others)
    try:
        return Server(board, host, port, stale_after)
    except OSError as error:
        raise RunError(_not_listening(host, port, error)) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_place(host: str, port: int, open_to_others: bool) -> None:
    where = f"status page at {host}:{port}"
    if not 0 <= port <= LARGEST_PORT:
        raise UsageError(Problem(where, f"port {port}", "0 to 65535", "--port 9400"))
    if not open_to_others and not is_loopback(host):
        seen = f"host {host!r} lets others in, and the page has no password"
        way = f"ssh -L {port}:127.0.0.1:{port} THIS-MACHINE shows it on yours"
        raise UsageError(Problem(where, seen, "a loopback address such as 127.0.0.1", way))


LISTEN_FAULTS: Mapping[int, tuple[str, str, str]] = {
    errno.EADDRINUSE: (
        "the port is in use by {owner}",
        "a free port",
        "ss -ltnp 'sport = :{port}' shows by what; --port 0 takes a free one",
    ),
    errno.EACCES: ("ports below 1024 need root", "a port from 1024", "--port 9400"),
    errno.EADDRNOTAVAIL: ("no address of this machine", "one of its own", "ip -brief address"),
}
"""Seen, wanted and fix where the server cannot listen."""


def _not_listening(host: str, port: int, error: OSError) -> Problem:
    other = (error.strerror or str(error), "an address of this machine", "ip -brief address")
    seen, wanted, fix = LISTEN_FAULTS.get(error.errno or 0, other)
    owner = "another process"
    if error.errno == errno.EADDRINUSE:
        with contextlib.suppress(OSError):
            owner = owner_of(port)
    return Problem(
        f"status page at {host}:{port}", seen.format(owner=owner), wanted, fix.format(port=port)
    )
