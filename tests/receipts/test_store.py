"""Receipts on disk, which is the last good one, and what they never hold."""

import json
from pathlib import Path

import pytest

from tests.receipts.made import receipt
from tetraspark.errors import UsageError
from tetraspark.receipts import store as stored
from tetraspark.receipts.store import ReceiptStore
from tetraspark.receipts.take import without_key

A, B, C, D = (f"2026110{day}-000000-000001" for day in range(1, 5))


@pytest.fixture
def store(tmp_path: Path) -> ReceiptStore:
    return ReceiptStore(tmp_path / "line")


def test_a_receipt_is_read_back_as_it_was_taken(store: ReceiptStore) -> None:
    path = store.keep(receipt(A))
    assert store.read(A) == receipt(A).sealed()
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tetraspark": "9"}, "changed since it was written"),
        ({"more": 1}, "more"),
        ({"id": 7}, "id"),
    ],
)
def test_a_receipt_that_was_changed_is_refused(
    store: ReceiptStore, change: dict[str, object], said: str
) -> None:
    path = store.keep(receipt(A))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UsageError, match=said) as caught:
        store.read(A)
    assert str(path) in caught.value.problems[0].where


def test_one_that_is_gone_is_a_refusal(store: ReceiptStore) -> None:
    with pytest.raises(UsageError, match="No such file"):
        store.read(A)


def test_an_id_may_be_shortened_until_two_have_it(store: ReceiptStore) -> None:
    for id in (A, B):
        store.keep(receipt(id))
    assert store.find("20261102") == B
    for name in ("2026110", "x", ""):
        with pytest.raises(UsageError, match="receipts list"):
            store.find(name)


def test_the_oldest_go_and_the_last_good_ones_never(
    store: ReceiptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "KEPT_RECEIPTS", 2)
    for id in (A, B, C, D):
        store.keep(receipt(id))
    assert store.ids() == [C, D]
    assert store.good_before(D) == C


@pytest.mark.parametrize(
    ("kept", "run", "good"),
    [
        ((A, B, C), C, B),
        # The newest run never became ready.
        ((A, B, C), D, C),
        ((A,), A, None),
        ((), None, None),
        ((A, B), None, B),
    ],
)
def test_the_last_good_one_before_a_run(
    store: ReceiptStore, kept: tuple[str, ...], run: str | None, good: str | None
) -> None:
    for id in kept:
        store.keep(receipt(id))
    assert store.good_before(run) == good


def test_the_way_back_never_leads_forward(store: ReceiptStore) -> None:
    """After A, B, and a rollback of B to A as C, the last good one before C is none, not B."""
    store.keep(receipt(A))
    store.keep(receipt(B))
    store.keep(receipt(C, rollback_of=A))
    assert store.good_before(C) is None
    store.keep(receipt(D, rollback_of=B))
    assert store.good_before(D) == A


def test_the_key_is_taken_out_of_a_site_even_of_a_comment() -> None:
    text = 'port = 1  # the key is correct-horse\nurl = "https://me:hunter2@h/"\n'
    assert without_key(text, "correct-horse") == (
        'port = 1  # the key is [hidden]\nurl = "https://[hidden]h/"\n'
    )


def test_a_key_as_short_as_a_word_takes_no_site_apart() -> None:
    assert without_key("port = 1", "port") == "port = 1"
