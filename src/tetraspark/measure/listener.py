"""Rank 0 opens the address at which the others meet it."""

import errno
import socket
from collections.abc import Mapping

from tetraspark.errors import RunError
from tetraspark.measure.place import Place

LISTEN_ERRORS: Mapping[int, tuple[str, str, str]] = {
    errno.EADDRINUSE: (
        "{where} is in use",
        "a free port",
        "ss -ltnp 'sport = :{port}' shows by what; or another port in --meet, on every node",
    ),
    errno.EADDRNOTAVAIL: (
        "{host} is no address of this machine",
        "an address of the machine of rank 0 in --meet",
        "ip -brief address",
    ),
    errno.EACCES: ("{where} needs root", "a port from 1024", "another --meet, on every node"),
}
"""Seen, wanted and fix where rank 0 cannot listen."""


def listen(place: Place) -> socket.socket:
    """Return a listening socket. Raises RunError."""
    try:
        return socket.create_server(place.address)
    except OSError as error:
        host, port = place.address
        _, wanted, fix = LISTEN_ERRORS[errno.EADDRNOTAVAIL]
        other = (f"cannot listen at {{where}}: {error.strerror or error}", wanted, fix)
        texts = LISTEN_ERRORS.get(error.errno or 0, other)
        known = {"where": place.where, "host": host, "port": port}
        raise RunError(place.problem(0, *(text.format(**known) for text in texts))) from error
