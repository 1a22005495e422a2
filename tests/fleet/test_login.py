"""Logins of a fleet: who logs in where, and with a key that is there."""

from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.fleet.login import logins
from tetraspark.site.load import load_site

SITES = Path(__file__).parents[2] / "sites"


def site(folder: Path, key: str) -> Path:
    text = (SITES / "four-sparks-switch.toml").read_text()
    file = folder / "site.toml"
    file.write_text(text.replace("~/.ssh/id_ed25519", key))
    return file


def test_every_node_has_a_destination_and_the_key(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("")
    found = logins(load_site(site(tmp_path, "key")))
    assert [str(login) for login in found] == [
        "alice@10.0.0.1", "alice@10.0.0.2", "alice@10.0.0.3", "bob@spark4.lan"
    ]  # fmt: skip
    assert found[0].options == ("-l", "alice", "-i", str(key))


def test_a_key_that_is_not_there_is_told_at_its_line(tmp_path: Path) -> None:
    file = site(tmp_path, "absent")
    with pytest.raises(UsageError) as caught:
        logins(load_site(file))
    (problem,) = caught.value.problems
    line = next(n for n, row in enumerate(file.read_text().split("\n"), 1) if "absent" in row)
    assert problem.where == f"{file}:{line}"
    assert problem.seen == f"no such key: {tmp_path / 'absent'}" and "ssh-keygen" in problem.fix
