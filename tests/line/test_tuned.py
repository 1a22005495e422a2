"""What `tune` has stored, from its file to the ranks' variables, and where each came from."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tetraspark.collectives.settings import Settings
from tetraspark.collectives.thresholds import ThresholdKey, Thresholds
from tetraspark.engine.communicator_env import settings_from
from tetraspark.errors import UsageError
from tetraspark.fleet.runner import Inventory
from tetraspark.line.local_plan import local_plan
from tetraspark.line.plan import Plan
from tetraspark.line.threshold_store import ThresholdStore
from tetraspark.line.tuned import absence, key_of, tuned
from tetraspark.site.load import LoadedSite, load_site

SITE = (Path(__file__).parents[2] / "sites" / "local.toml").read_text()
BOTH = 'max_two_shot_bytes = "tuned"\ntwo_shot_from = "tuned"'
K = 1 << 10
MAX, FROM = "TETRASPARK_MAX_TWO_SHOT_BYTES", "TETRASPARK_TWO_SHOT_FROM"
Site = Callable[[str], LoadedSite]
Planned = Callable[[LoadedSite], Plan]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    def load(keys: str) -> LoadedSite:
        file = tmp_path / "mine.toml"
        file.write_text(SITE.replace('transport = "shm"', f'transport = "shm"\n{keys}'))
        return load_site(file)

    return load


@pytest.fixture
def store(tmp_path: Path) -> ThresholdStore:
    return ThresholdStore(tmp_path / "state")


@pytest.fixture
def planned(store: ThresholdStore, inventory: Inventory) -> Planned:
    return lambda loaded: local_plan(loaded, inventory, tuned(loaded, store))


def keep(store: ThresholdStore, key: ThresholdKey, start: int | None, limit: int | None) -> Path:
    return store.write(Thresholds(start, limit, key), {"at": "2026-01-01"})


def sizes(plan: Plan) -> tuple[int, int | None]:
    """Return what every rank's group is given, as the engine reads it."""
    found = [settings_from(dict(command.env)) for command in plan.ranks]
    assert len(set(found)) == 1
    settings = found[0]
    assert isinstance(settings, Settings)
    return settings.max_two_shot_bytes, settings.two_shot_from


def origin(plan: Plan, name: str) -> str:
    (found,) = [one.origin.where for one in plan.settings if one.name == name]
    return found


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("", (0, None)),
        ("max_two_shot_bytes = 4194304", (4096 * K, 2048 * K + 16)),
        ("max_two_shot_bytes = 1048576\ntwo_shot_from = 65536", (1024 * K, 64 * K)),
        ("max_two_shot_bytes = 65536\ntwo_shot_from = 65536", (64 * K, 64 * K)),
    ],
)
def test_sizes_of_the_site(
    site: Site, planned: Planned, keys: str, wanted: tuple[int, int | None]
) -> None:
    plan = planned(site(keys))
    assert sizes(plan) == wanted
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("keys", "stored", "wanted"),
    [
        (BOTH, (64 * K, 8192 * K), (8192 * K, 64 * K)),
        (BOTH, (None, 8192 * K), (0, None)),
        (BOTH, (64 * K, None), (0, None)),
        (BOTH, (128 * K, 64 * K), (0, None)),
        ('max_two_shot_bytes = "tuned"', (64 * K, 8192 * K), (8192 * K, 2048 * K + 16)),
        ('max_two_shot_bytes = 524288\ntwo_shot_from = "tuned"', (64 * K, 16), (512 * K, 64 * K)),
    ],
)
def test_sizes_of_the_store(
    site: Site,
    planned: Planned,
    store: ThresholdStore,
    keys: str,
    stored: tuple[int | None, int | None],
    wanted: tuple[int, int | None],
) -> None:
    loaded = site(keys)
    path = keep(store, key_of(loaded), *stored)
    plan = planned(loaded)
    assert sizes(plan) == wanted
    assert plan.warnings == ()
    told = origin(plan, FROM if "two_shot_from" in keys and wanted[0] else MAX)
    if wanted[0]:
        assert str(path) in told
        assert f"{loaded.path}:" in told


def test_nothing_stored_is_a_named_warning_and_counts_as_absent(
    site: Site, planned: Planned
) -> None:
    loaded = site(BOTH)
    plan = planned(loaded)
    assert sizes(plan) == (0, None)
    (warning,) = plan.warnings
    assert warning.where == loaded.origin("collectives.max_two_shot_bytes").where
    assert "no thresholds are stored" in warning.seen
    assert warning.fix == f"tetraspark tune --site {loaded.path}"
    assert json.loads(json.dumps(plan.as_dict()))["warnings"] == [warning.as_dict()]
    assert sizes(planned(site('max_two_shot_bytes = 4194304\ntwo_shot_from = "tuned"'))) == (
        4096 * K,
        2048 * K + 16,
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"build": "0" * 16}, f"build {'0' * 16}, not "),
        ({"lanes": 2}, "lanes 2, not 1"),
        ({"world": 2}, "world 2, not 4"),
        ({"mtu": 4096}, "mtu 4096, not 0"),
    ],
)
def test_another_key_is_not_used_and_its_difference_is_named(
    site: Site, planned: Planned, store: ThresholdStore, change: dict[str, Any], says: str
) -> None:
    loaded = site(BOTH)
    keep(store, replace(key_of(loaded), **change), 64 * K, 8192 * K)
    plan = planned(loaded)
    assert sizes(plan) == (0, None)
    assert says in plan.warnings[0].seen


def test_the_key_is_of_lanes_ranks_and_machine(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(site(""))
    assert (key.world, key.lanes, key.mtu, key.transport) == (4, 1, 0, "shm")
    assert key_of(site("lanes = 3")).lanes == 3
    assert key_of(site(""), "cuda").transport == "shm-cuda"
    monkeypatch.setattr("tetraspark.line.tuned.machine", lambda: "another machine")
    assert key_of(site("")).build != key.build


def damaged(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "[" * 100_000,
        lambda text: text.replace("65536", '{"a":' * 9_000),
        lambda text: text.replace("65536", "9" * 5_000),
        lambda text: "x" * (2 << 20),
        lambda text: "\x00\x01",
        lambda text: text.replace('"schema": 1', '"schema": 2'),
        lambda text: text.replace("65536", "65537"),
        lambda text: text.replace("65536", '"64K"'),
        lambda text: text.replace('"lanes": 1', '"lanes": 2'),
        lambda text: text.replace('"reduce_limit"', '"limit"'),
        lambda text: text.replace('"measured"', '"guessed"'),
        lambda text: text.replace('"world": 4', '"world": 44'),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(
    site: Site, planned: Planned, store: ThresholdStore, change: Callable[[str], str]
) -> None:
    loaded = site(BOTH)
    path = keep(store, key_of(loaded), 64 * K, 8192 * K)
    damaged(path, change)
    with pytest.raises(UsageError) as caught:
        planned(loaded)
    (problem,) = caught.value.problems
    assert problem.where == str(path)
    assert str(path) in problem.fix
    assert "tetraspark tune" in problem.fix


def test_a_file_of_another_machine_under_this_name_is_refused(
    site: Site, planned: Planned, store: ThresholdStore
) -> None:
    loaded = site(BOTH)
    foreign = keep(store, replace(key_of(loaded), build="0" * 16), 64 * K, 8192 * K)
    foreign.rename(store.path(key_of(loaded)))
    with pytest.raises(
        UsageError, match="it holds the thresholds of shm-w4-l1-m0-0000000000000000"
    ):
        planned(loaded)


def test_a_damaged_file_of_another_key_is_told_too(site: Site, store: ThresholdStore) -> None:
    loaded = site(BOTH)
    path = keep(store, replace(key_of(loaded), lanes=2), 64 * K, None)
    damaged(path, lambda text: text[:-9])
    with pytest.raises(UsageError, match=str(path)):
        absence(loaded, key_of(loaded), "line x", store)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("two_shot_from = 65536", "`two_shot_from` is set alone"),
        ("max_two_shot_bytes = 2097152", "up to 2097152 all goes at once"),
        ("max_two_shot_bytes = 16\ntwo_shot_from = 32", "two_shot_from = 32 with"),
        ('max_two_shot_bytes = "tund"', "'tund'"),
        ("max_two_shot_bytes = 33", "is 33"),
        ("max_two_shot_bytes = true", "is True"),
        ("max_two_shot_bytes = 1e6", "is 1000000.0"),
        ("max_two_shot_bytes = 536870912", "is 536870912"),
    ],
)
def test_sizes_that_mean_nothing_are_refused_at_their_line(
    site: Site, keys: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        site(keys)
    (problem,) = caught.value.problems
    assert says in problem.seen
    lines = SITE.splitlines()
    first = lines.index('transport = "shm"') + 2
    assert problem.where.rsplit(":", 1)[1] in (str(first), str(first + 1))


def test_an_environment_without_the_sizes_is_refused(site: Site, planned: Planned) -> None:
    env = dict(planned(site("")).ranks[0].env)
    for name in (MAX, FROM):
        with pytest.raises(ValueError, match=f"{name}: not set"):
            settings_from({key: value for key, value in env.items() if key != name})
