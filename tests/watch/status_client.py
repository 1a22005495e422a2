"""Clients of the status server: a polite one, and one that sends what it likes."""

import socket
from functools import cache

import httpx

from tetraspark.watch.http import Server

LOOPBACK = "127.0.0.1"


@cache
def client() -> httpx.Client:
    """Return one client for all tests: each would load the certificates that none needs."""
    return httpx.Client(trust_env=False, timeout=60)


def get(server: Server, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    url = f"http://{LOOPBACK}:{server.port}{path}"
    return client().request(method, url, headers=headers)


def raw(server: Server, request: bytes) -> bytes:
    """Send bytes and return all that comes back."""
    with socket.create_connection((LOOPBACK, server.port), timeout=30) as client:
        client.sendall(request)
        found = b""
        while more := client.recv(65536):
            found += more
    return found


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.0 "), answer[:80]
    return int(answer.split()[1])
