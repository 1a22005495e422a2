"""Where the status server may listen, and why it cannot."""

import errno
import ipaddress
from collections.abc import Mapping

from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.port import owner_of

LARGEST_PORT = 65535


def is_loopback(host: str) -> bool:
    """Whether a host can mean this machine alone; of names, only the one that always does."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_place(host: str, port: int, open_to_others: bool) -> None:
    """Raise UsageError for a port that is none, and for a host that lets others in unasked."""
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
        "ss -ltnp 'sport = :{port}' shows by what; {free_port}",
    ),
    errno.EACCES: ("ports below 1024 need root", "a port from 1024", "{free_port}"),
    errno.EADDRNOTAVAIL: ("no address of this machine", "one of its own", "ip -brief address"),
}
"""Seen, wanted and fix where the server cannot listen."""


def not_listening(host: str, port: int, error: OSError, free_port: str) -> Problem:
    """Say why a server cannot listen there; `free_port` says how to ask for a free port."""
    other = (error.strerror or str(error), "an address of this machine", "ip -brief address")
    seen, wanted, fix = LISTEN_FAULTS.get(error.errno or 0, other)
    owner = owner_of(port) if error.errno == errno.EADDRINUSE else ""
    return Problem(
        where=f"status page at {host}:{port}",
        seen=seen.format(owner=owner),
        wanted=wanted,
        fix=fix.format(port=port, free_port=free_port),
    )
