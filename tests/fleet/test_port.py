import errno
import os
import socket
from pathlib import Path

import pytest

from tetraspark.fleet.port import (
    EPHEMERAL,
    FIRST_PORT,
    Listener,
    bind_error,
    free_ports,
    listeners,
    owner_of,
)

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:7530 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 54321        0 99 1
"""


def test_only_listeners_of_the_port_count() -> None:
    assert listeners(TABLE, 30000) == [Listener("4711", 0)]
    assert listeners(TABLE, 22) == [Listener("99", 54321)]
    assert listeners(TABLE, 80) == []
    assert listeners("", 80) == []


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


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_a_listener_on_all_addresses_of_both_kinds_is_named() -> None:
    with socket.create_server(
        ("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=False
    ) as server:
        port = server.getsockname()[1]
        assert bind_error(port) is not None
        assert owner_of(port).startswith(f"pid {os.getpid()} (")


def test_a_port_that_is_bound_and_not_listened_on_has_no_owner_to_name() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert bind_error(port) is not None
        assert owner_of(port) == "a process that cannot be seen"


def test_a_process_that_may_not_be_looked_at_is_named_by_its_user(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(TABLE)
    ended = tmp_path / "4711"
    (ended / "fd").mkdir(parents=True)
    (ended / "fd" / "3").symlink_to("socket:[4711]")
    assert owner_of(30000, tmp_path) == "a process of root", "its name cannot be read"
    assert owner_of(22, tmp_path) == "a process of user 54321"
    assert owner_of(80, tmp_path) == "a process that cannot be seen"
    assert owner_of(80, tmp_path / "none") == "a process that cannot be seen"
    (ended / "comm").write_text("nginx\n")
    assert owner_of(30000, tmp_path) == "pid 4711 (nginx)"


def test_free_ports_are_different_and_never_given_to_a_connection() -> None:
    ports = free_ports(20)
    first_ephemeral = int(EPHEMERAL.read_text().split()[0])
    assert all(FIRST_PORT <= port < first_ephemeral for port in ports)
    assert len(set(ports)) == 20
    assert all(bind_error(port) is None for port in ports)
