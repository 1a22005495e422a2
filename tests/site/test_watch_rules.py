"""A fall-back that has nothing to fall back from, and a port of two, are refused where written."""

from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[2] / "sites"
WANTED = '\n[watch]\non_wedge = "restart-without-transport"\n'


def load(text: str) -> None:
    load_source(decode_source(SITES / "mine.toml", text.encode()))


def test_a_restart_without_a_transport_needs_one() -> None:
    local = (SITES / "local.toml").read_text()
    load(local + WANTED)
    for text in (
        local.replace('"shm"', '"off"'),
        local.replace('[collectives]\ntransport = "shm"', ""),
    ):
        with pytest.raises(UsageError, match="without a transport in") as caught:
            load(text + WANTED)
        (problem,) = caught.value.problems
        assert problem.fix == 'set on_wedge = "restart-once"'
        assert problem.where.endswith(f":{text.count(chr(10)) + 3}")


def test_the_page_has_a_port_of_its_own() -> None:
    local = (SITES / "local.toml").read_text()
    load(local + "\n[watch]\nport = 30001\n")
    with pytest.raises(UsageError, match="for the API and for the watch's page") as caught:
        load(local + "\n[watch]\nport = 30000\n")
    (problem,) = caught.value.problems
    assert problem.where.endswith(f":{local.count(chr(10)) + 3}")
    free = local.replace("port = 30000", "port = 0")
    load(free + "\n[watch]\nport = 0\n")
    default = local.replace("port = 30000", "port = 9400")
    with pytest.raises(UsageError, match="for the API and for the watch's page"):
        load(default)
    load(default + "\n[watch]\npage = false\n")
