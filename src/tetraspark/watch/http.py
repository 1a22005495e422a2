"""The sidecar's own small server: /metrics, the page, /state.json and /healthz; read-only."""

import contextlib
import logging
import socket
import socketserver
import sys
import threading
import time

from prometheus_client import CollectorRegistry

from tetraspark.errors import RunError
from tetraspark.watch.board import Board
from tetraspark.watch.http_handler import Handler
from tetraspark.watch.http_health import health_of
from tetraspark.watch.http_place import is_loopback, not_listening, refuse_place
from tetraspark.watch.metrics import registry
from tetraspark.watch.page.lane_rates import LaneRates
from tetraspark.watch.page.render import Shown

STALE_SECONDS = 90.0
"""Age from which a look says nothing about now: 15 s apart, and a canary may take 30 s more."""
LINGER_SECONDS, LINGER_BYTES = 1.0, 1 << 20
"""How long, and how much, is still read of a client that was answered."""
CONNECTIONS = 32
"""Served at a time; one more is closed at once."""
POLL_SECONDS = 0.25
"""Between two looks at the board, and at whether to end."""
FREE_PORT = "--port 0 takes a free one"
Request = socket.socket | tuple[bytes, socket.socket]
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
        self._thread = threading.Thread(
            target=self.serve_forever, args=(POLL_SECONDS,), name="page", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on, where 0 was asked for too."""
        return int(self.server_address[1])

    @property
    def shown(self) -> Shown:
        """What there is to show now."""
        seen = self.board.latest()
        health = health_of(seen, time.time(), self._stale_after)
        return Shown(seen, health, self._rates.look(seen))

    def close(self) -> None:
        """Stop listening and free the port; a second time does nothing."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def service_actions(self) -> None:
        """Look at each observation, also while nobody asks: a rate needs the one before."""
        self._rates.look(self.board.latest())

    def process_request(self, request: Request, client_address: object) -> None:
        """Serve a connection in a thread of its own, or close it when there are too many."""
        if not self._free.acquire(blocking=False):
            self.close_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # The system has no thread left to give.
            self._free.release()
            raise

    def process_request_thread(self, request: Request, client_address: object) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def shutdown_request(self, request: Request) -> None:
        """Close a connection once the client has what it was told.

        Closing on bytes that nobody read would make the system throw the answer away.
        """
        assert isinstance(request, socket.socket), "a server of TCP has sockets"
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            drain(request, LINGER_SECONDS, LINGER_BYTES)
        self.close_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a fault of ours; a client that left is none."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            log.exception("a request of the status page failed")


def serve_page(
    board: Board,
    host: str,
    port: int,
    *,
    open_to_others: bool = False,
    stale_after: float = STALE_SECONDS,
    free_port: str = FREE_PORT,
) -> Server:
    """Serve a board's line at host and port (0: a free one) until the server is closed.

    `host` is loopback unless `open_to_others`: there is no password, and whoever can connect sees
    all. `free_port` is the fix for a port that is taken. Raises UsageError for a host or port that
    is none, RunError where it cannot listen.
    """
    refuse_place(host, port, open_to_others)
    try:
        return Server(board, host, port, stale_after)
    except OSError as error:
        raise RunError(not_listening(host, port, error, free_port)) from error


def drain(connection: socket.socket, seconds: float, limit: int) -> None:
    """Read and forget what a client sends until it ends, for so long and so many bytes at most.

    Raises OSError of the socket.
    """
    deadline = time.monotonic() + seconds
    while limit > 0 and (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        more = connection.recv(min(limit, 65536))
        if not more:
            return
        limit -= len(more)
