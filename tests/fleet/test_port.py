import errno
import os
import socket

from tetraspark.fleet.port import (
    EPHEMERAL,
    FIRST_PORT,
    _listening_inodes,
    bind_error,
    free_ports,
    owner_of,
)

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:7530 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1
"""


def test_only_listeners_of_the_port_count() -> None:
    assert _listening_inodes(TABLE, 30000) == {"4711"}
    assert _listening_inodes(TABLE, 22) == {"99"}
    assert _listening_inodes(TABLE, 80) == set()


def test_a_listener_takes_a_port_and_is_named() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        taken = bind_error(port)
        assert taken is not None
        assert taken.errno == errno.EADDRINUSE
        assert owner_of(port).startswith(f"pid {os.getpid()} (")
    assert bind_error(port) is None


def test_free_ports_are_different_and_never_given_to_a_connection() -> None:
    ports = free_ports(20)
    first_ephemeral = int(EPHEMERAL.read_text().split()[0])
    assert all(FIRST_PORT <= port < first_ephemeral for port in ports)
    assert len(set(ports)) == 20
    assert all(bind_error(port) is None for port in ports)
