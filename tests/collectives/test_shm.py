"""Files in /dev/shm: private, gone early, swept when their owner died."""

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tetraspark.collectives.failure import RefusedError
from tetraspark.collectives.group import Group
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.liveness import parse_stat, read_stat, this_process
from tetraspark.collectives.shm import ShmTransport, name_of, sweep
from tetraspark.collectives.vote import Ballot

LAYOUT = Layout(2, 1, 4096, 4096)


def test_a_region_is_private_and_unlinked_when_sealed(tmp_path: Path) -> None:
    ranks = [ShmTransport(rank, directory=tmp_path) for rank in (0, 1)]
    cards = [rank.open(LAYOUT) for rank in ranks]
    files = list(tmp_path.iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert {file.stat().st_size for file in files} == {LAYOUT.total}
    for rank in ranks:
        assert all(rank.connect(cards))
    for rank in ranks:
        rank.seal()
    assert list(tmp_path.iterdir()) == []
    for rank in ranks:
        rank.close()
        rank.close()


def test_a_failed_opening_leaves_nothing(tmp_path: Path) -> None:
    transport = ShmTransport(0, directory=tmp_path)
    transport.open(LAYOUT)
    transport.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fault", "words"), [("mode", "not a private file"), ("size", "bytes, not")]
)
def test_a_region_that_is_not_as_its_card_says_is_refused(
    tmp_path: Path, fault: str, words: str
) -> None:
    transport = ShmTransport(0, directory=tmp_path)
    card = transport.open(LAYOUT)
    file = next(tmp_path.iterdir())
    if fault == "mode":
        file.chmod(0o666)
    else:
        os.truncate(file, 4096)
    with pytest.raises(ValueError, match=words):
        transport.connect([card, card])
    transport.close()
    assert list(tmp_path.iterdir()) == []


def test_a_region_that_was_swapped_for_a_link_is_refused(tmp_path: Path) -> None:
    transport = ShmTransport(0, directory=tmp_path)
    card = transport.open(LAYOUT)
    file = next(tmp_path.iterdir())
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    with pytest.raises(OSError, match="symbolic links"):
        transport.connect([card, card])
    transport.close()


def test_the_sweep_takes_the_dead_and_leaves_the_living(tmp_path: Path) -> None:
    own = this_process()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        text = read_stat(child.pid)
        assert text is not None
        dead = tmp_path / f"tetraspark-{child.pid}-{parse_stat(text)[1]}-0"
        dead.touch()
        (tmp_path / name_of(own, 0)).touch()
        (tmp_path / "tetraspark-not-a-region").touch()
        assert sweep(tmp_path, own) == []
        child.kill()
        child.wait()
    assert sweep(tmp_path, own) == [dead.name]
    assert not dead.exists()
    assert (tmp_path / name_of(own, 0)).exists()


def test_pull_takes_no_memory_for_receive_slots(tmp_path: Path) -> None:
    layout = Layout(8, 1, 1 << 20, 1 << 20)
    sizes = {}
    for pull in (True, False):
        transport = ShmTransport(0, pull=pull, directory=tmp_path)
        transport.open(layout)
        sizes[pull] = next(tmp_path.iterdir()).stat().st_blocks * 512
        transport.close()
    assert sizes[True] < 5 << 20
    assert sizes[False] >= layout.total


def as_rank(data: bytes, rank: int) -> bytes:
    """Return what another rank says in the same round: its own ballot, else the same."""
    try:
        return replace(Ballot.from_bytes(data), rank=rank).to_bytes()
    except ValueError:
        return data


def test_an_exchange_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    rounds = []

    def exchange(data: bytes) -> list[bytes]:
        rounds.append(data)
        if len(rounds) == 3:
            assert len(list(tmp_path.iterdir())) == 1
            raise ConnectionError("the exchange broke")
        return [as_rank(data, rank) for rank in (0, 1)]

    with pytest.raises(ConnectionError, match="the exchange broke"):
        Group.open(0, 2, exchange, transport=ShmTransport(0, directory=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_host_without_room_is_a_reason_on_every_rank(tmp_path: Path) -> None:
    told = []

    def exchange(data: bytes) -> list[bytes]:
        told.append(data)
        return [as_rank(data, rank) for rank in (0, 1)]

    transport = ShmTransport(0, directory=tmp_path / "absent")
    with pytest.raises(
        RefusedError, match=r"rank 0: cannot set up its end \(\d+ bytes\): .*absent"
    ):
        Group.open(0, 2, exchange, transport=transport)
    assert len(told) == 2
