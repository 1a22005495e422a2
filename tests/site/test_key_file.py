"""The API key's file: whose it must be, and the credential that systemd gives a unit."""

import os
from pathlib import Path

import pytest

from tests.serving import write_site
from tetraspark.errors import UsageError
from tetraspark.site.key_file import CREDENTIAL, key_file_of, read_key
from tetraspark.site.load import LoadedSite, load_site


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedSite:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    return load_site(write_site(tmp_path, "k", {"port = 30000": 'port = 0\nkey_file = "key"'}))


def give(folder: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    file = folder / CREDENTIAL
    file.write_text("of-the-unit\n")
    file.chmod(mode)
    return file


def test_without_a_unit_it_is_the_sites_own(
    loaded: LoadedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert key_file_of(loaded) == tmp_path / "key"
    # A unit that was given other credentials.
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert key_file_of(loaded) == tmp_path / "key"


@pytest.mark.parametrize("mode", [0o400, 0o440])
def test_in_a_unit_it_is_the_units(
    loaded: LoadedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """An ACL for the unit's login shows as the group's right to read."""
    given = give(tmp_path / "credentials", mode, monkeypatch)
    file = key_file_of(loaded)
    assert file == given
    assert read_key(given) == "of-the-unit"


@pytest.mark.parametrize("mode", [0o444, 0o460, 0o404])
def test_a_credential_for_more_than_the_group_is_refused(
    loaded: LoadedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    with pytest.raises(UsageError, match=f"mode {mode:o}"):
        read_key(give(tmp_path / "credentials", mode, monkeypatch))


def test_a_line_without_a_key_has_none_in_a_unit_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(tmp_path / "credentials", 0o400, monkeypatch)
    assert key_file_of(load_site(write_site(tmp_path, "open"))) is None


def test_a_pipe_is_no_key_file(tmp_path: Path) -> None:
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(UsageError, match="a pipe"):
        read_key(tmp_path / "key")


def test_the_chmod_to_type_is_quoted(tmp_path: Path) -> None:
    file = tmp_path / "my key"
    file.write_text("k")
    file.chmod(0o640)
    with pytest.raises(UsageError, match=f"chmod 600 '{file}'"):
        read_key(file)
