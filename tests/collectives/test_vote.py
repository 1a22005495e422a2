"""The vote: one reason, all of them named, the same text on every rank."""

from dataclasses import replace

import pytest

from tetraspark.collectives.failure import RefusedError
from tetraspark.collectives.vote import Ballot, count, unanimous

FIRST = Ballot(0, 3, 1, 1, "aa", "shm", ("BF16",), {"lanes": 1, "routes": None}, "d1")
VOTES = [replace(FIRST, rank=rank) for rank in range(3)]


def refused(ballots: list[Ballot]) -> list[tuple[int, str]]:
    with pytest.raises(RefusedError) as error:
        count([one.to_bytes() for one in ballots])
    return error.value.reasons


def test_equal_votes_are_returned() -> None:
    assert count([vote.to_bytes() for vote in VOTES]) == VOTES


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"protocol": 2}, "protocol is 2, rank 0 has 1"),
        ({"abi": 7}, "abi is 7, rank 0 has 1"),
        ({"proxy": "bb"}, "proxy is 'bb', rank 0 has 'aa'"),
        ({"transport": "fake"}, "transport is 'fake', rank 0 has 'shm'"),
        ({"dtypes": ()}, "dtypes is (), rank 0 has ('BF16',)"),
        ({"settings": {"lanes": 2, "routes": None}}, "settings.lanes is 2, rank 0 has 1"),
        ({"refusal": "no compiler"}, "no compiler"),
        ({"rank": 1}, "says it is rank 1 of 3, it is rank 2 of 3"),
    ],
)
def test_a_difference_is_named_with_its_rank(change: dict[str, object], reason: str) -> None:
    ballots = [*VOTES[:2], replace(VOTES[2], **change)]  # type: ignore[arg-type]  # test-given
    assert refused(ballots) == [(1 if change == {"refusal": 1} else 2, reason)]


def test_a_world_of_another_size_is_named() -> None:
    reasons = refused([*VOTES[:2], replace(VOTES[2], world=4)])
    assert (2, "says it is rank 2 of 4, it is rank 2 of 3") in reasons


def test_a_rank_that_cannot_be_understood_is_named() -> None:
    for garbage in (b"\xff", b"[]", b'{"rank": 1}'):
        with pytest.raises(RefusedError, match="rank 1: cannot be understood"):
            count([VOTES[0].to_bytes(), garbage, VOTES[2].to_bytes()])


def test_later_rounds() -> None:
    unanimous([b"", b"", b""])
    with pytest.raises(RefusedError, match="rank 1: no room; rank 2: no file"):
        unanimous([b"", b"no room", b"no file"])
