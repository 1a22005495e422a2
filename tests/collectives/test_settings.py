"""Settings: what is refused, and what must be equal on every rank."""

from dataclasses import replace

import pytest

from tetraspark.collectives.routes import Routes
from tetraspark.collectives.settings import Settings


@pytest.mark.parametrize(
    "field",
    [
        {"max_reduce_bytes": 24},
        {"max_gather_bytes": 0},
        {"max_two_shot_bytes": 24},
        {"max_two_shot_bytes": 1 << 28},
        {"two_shot_from": 1},
        {"two_shot_from": 0, "max_two_shot_bytes": 4096},
        {"two_shot_from": 4097, "max_two_shot_bytes": 4096},
        {"lanes": 5},
        {"delivery": "shout"},
        {"start_sequence": 1 << 32},
        {"late_limit_s": 0.0},
        {"freeze_limit_s": -1.0},
        {"settle_s": 1.5},
        {"notice_s": 0.0},
        {"spins": -1},
    ],
)
def test_what_cannot_work_is_refused(field: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(field)).removesuffix("_limit_s")):
        Settings(**field)  # type: ignore[arg-type]  # wrong on purpose


def test_the_digest_covers_what_is_shared_and_nothing_local() -> None:
    base = Settings()
    assert replace(base, spins=7, yields=0).digest() == base.digest()
    two_shot = replace(base, max_two_shot_bytes=4096)
    others = [replace(base, lanes=2), replace(base, routes=Routes.uniform(2, 1)), two_shot]
    others.append(replace(two_shot, two_shot_from=64))
    assert len({one.digest() for one in (base, *others)}) == 5


def test_two_shot_begins_where_it_was_told_and_ends_where_it_fits() -> None:
    ways = [Settings(max_two_shot_bytes=4096, two_shot_from=64), Settings(max_two_shot_bytes=4096)]
    seen = [[str(way.algorithm_for(nbytes)) for nbytes in (48, 64, 4096, 4112)] for way in ways]
    assert seen == [["one-shot", "two-shot", "two-shot", "one-shot"], ["one-shot"] * 4]


def test_routes_of_another_group_are_refused() -> None:
    with pytest.raises(ValueError, match="routes are for 3 ranks and 1 lanes"):
        Settings(routes=Routes.uniform(3, 1)).routes_for(4)
