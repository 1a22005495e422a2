"""The folder of all state: what is refused in its place, before any work."""

from pathlib import Path

import pytest

from tests.modes import bound_by_modes, folder_of_mode
from tetraspark.errors import UsageError
from tetraspark.fleet.state_home import require_writable, state_home


@pytest.mark.parametrize("below", ["", "below/it"])
@pytest.mark.parametrize("kind", ["file", "link loop", "link to nowhere"])
def test_what_is_no_folder_and_cannot_become_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, below: str
) -> None:
    place = tmp_path / "state"
    if kind == "file":
        place.touch()
    else:
        place.symlink_to(place if kind == "link loop" else tmp_path / "absent")
    monkeypatch.setenv("TETRASPARK_STATE", str(place / below))
    with pytest.raises(UsageError, match=f"{place}: not a folder; .*TETRASPARK_STATE") as caught:
        state_home()
    assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match="cannot be made: "):
        require_writable(place / below / "line")


def test_a_folder_that_this_login_may_not_look_into_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with folder_of_mode(0o600) as folder, bound_by_modes():
        monkeypatch.setenv("TETRASPARK_STATE", str(folder))
        with pytest.raises(UsageError, match=f"{folder}: permission denied"):
            state_home()
        monkeypatch.setenv("TETRASPARK_STATE", str(folder / "below"))
        with pytest.raises(UsageError, match=f"{folder}: permission denied"):
            state_home()


def test_a_folder_that_cannot_be_written_is_told_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with folder_of_mode(0o555) as folder, bound_by_modes():
        monkeypatch.setenv("TETRASPARK_STATE", str(folder))
        assert state_home() == folder
        with pytest.raises(UsageError, match=f"{folder}: not writable"):
            require_writable(folder)
        with pytest.raises(UsageError, match=f"{folder}/line: cannot be made: Permission denied"):
            require_writable(folder / "line")


def test_a_folder_that_is_not_there_yet_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    require_writable(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
