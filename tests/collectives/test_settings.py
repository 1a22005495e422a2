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
    others = [replace(base, lanes=2), replace(base, routes=Routes.uniform(2, 1))]
    assert len({one.digest() for one in (base, *others)}) == 3


def test_routes_of_another_group_are_refused() -> None:
    with pytest.raises(ValueError, match="routes are for 3 ranks and 1 lanes"):
        Settings(routes=Routes.uniform(3, 1)).routes_for(4)
