"""A damaged, cut, overlong or foreign record of an opening is refused by name; C never reads it."""

import ctypes
import json
import zlib
from dataclasses import replace

import pytest

from tests.fuzz.records import DEVICES, FAILURES, RDMA, RECORDS, SHM, VOTES, Record, ballots
from tests.fuzz.strive import fuzz_record
from tetraspark.collectives import shm_card, verbs_card
from tetraspark.collectives.failure import RECORD_BYTES, Failure, RefusedError
from tetraspark.collectives.message import MAX_BYTES, built, seal, unseal
from tetraspark.collectives.verbs_card import Card
from tetraspark.collectives.vote import Ballot, count, unanimous

EXAMPLES = 100


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_what_differs_from_a_whole_record_is_refused(record: Record) -> None:
    for sample in record.samples:
        record.read(sample)
    fuzz_record(record, EXAMPLES)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_each_single_bit_counts(record: Record) -> None:
    sample = record.samples[0]
    for at in range(len(sample)):
        flipped = bytearray(sample)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(record.refusal):
            record.read(bytes(flipped))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_of_another_kind_is_refused(record: Record) -> None:
    for other in RECORDS:
        if other is not record:
            with pytest.raises(record.refusal, match=r"not a |cannot be understood: not a "):
                record.read(other.samples[0])


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("ballot", b"[1]", "no object"),
        ("ballot", b"[" * 20_000, "nested too deeply"),
        ("ballot", b"{}" + b" " * MAX_BYTES, "wanted at most"),
        ("ballot", b"{", "Expecting"),
        ("ballot", b"\xff", "decode"),
    ],
)
def test_what_is_sealed_and_still_no_message(name: str, body: bytes, words: str) -> None:
    checksum = zlib.crc32(body, zlib.crc32(name.encode()))
    with pytest.raises(ValueError, match=words):
        unseal(name, b"%s %08x " % (name.encode(), checksum) + body)


@pytest.mark.parametrize(
    "change",
    [
        {"dtypes": None}, {"dtypes": 3}, {"settings": []}, {"rank": "1"}, {"rank": True},
        {"refusal": None}, {"proxy": 7}, {"more": 1}, {"world": 2.0},
    ],
)  # fmt: skip
def test_a_ballot_of_other_types_is_the_refusal_of_its_rank(change: dict[str, object]) -> None:
    vote = unseal("ballot", VOTES[1]) | change
    with pytest.raises(RefusedError, match="rank 1: cannot be understood: a ballot"):
        count([VOTES[0], seal("ballot", vote), VOTES[2]])


def test_a_verdict_that_is_no_text_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="rank 1"):
        unanimous([b"", b"\xff\xfe"])


@pytest.mark.parametrize(
    "change",
    [
        {"lanes": {"1": [[17]]}}, {"lanes": [1]}, {"lanes": {"x": []}},
        {"lanes": {"1": [[1 << 24, 0]]}}, {"base": -1}, {"base": 1 << 64}, {"node": None},
        {"devices": [{"name": "a"}]}, {"devices": 3},
        {"devices": [{"name": "a", "gid": "00", "mtu": 4096, "rkey": 1}]},
        {"devices": [{"name": "a", "gid": "0" * 32, "mtu": 1500, "rkey": 1}]},
        {"devices": [{"name": "a", "gid": "0" * 32, "mtu": 4096, "rkey": 1 << 32}]},
    ],
)  # fmt: skip
def test_an_rdma_card_with_values_that_no_lane_has(change: dict[str, object]) -> None:
    """They would be cut to the width of a C field, and connect to something else."""
    card = unseal(verbs_card.NAME, RDMA.to_bytes()) | change
    with pytest.raises(ValueError, match=verbs_card.NAME):
        Card.from_bytes(seal(verbs_card.NAME, card))


def test_a_card_with_fewer_lanes_or_devices_names_its_node() -> None:
    assert RDMA.lane_of(1, 1) == (18, 6)
    assert RDMA.device(1) == DEVICES[1]
    for ask in (lambda: RDMA.lane_of(3, 0), lambda: RDMA.lane_of(1, 2), lambda: RDMA.device(2)):
        with pytest.raises(ValueError, match="node spark1 has no"):
            ask()


@pytest.mark.parametrize(
    "name", ["", "..", "/etc/passwd", "tetraspark-/../x", "other", "tetraspark-\0"]
)
def test_a_shared_memory_card_names_a_region_and_nothing_else(name: str) -> None:
    with pytest.raises(ValueError, match="with name"):
        replace(SHM, name=name)
    card = unseal(shm_card.NAME, SHM.to_bytes()) | {"name": name}
    with pytest.raises(ValueError, match="with name"):
        shm_card.Card.from_bytes(seal(shm_card.NAME, card))


def test_a_failure_has_a_kind_that_there_is() -> None:
    values = unseal("failure", FAILURES[0])
    odd: tuple[object, ...] = ("odd", None, [], 3)
    for kind in odd:
        with pytest.raises(ValueError, match="a failure with kind"):
            Failure.from_bytes(seal("failure", values | {"kind": kind}))
    assert max(map(len, FAILURES)) <= RECORD_BYTES
    with pytest.raises(ValueError, match="another version: detail"):
        built(Failure, "failure", {key: values[key] for key in values if key != "detail"})


def test_settings_travel_whole() -> None:
    votes = ballots(2)
    assert count([vote.to_bytes() for vote in votes]) == votes
    assert json.loads(json.dumps(votes[0].settings)) == votes[0].settings
    assert isinstance(Ballot.from_bytes(VOTES[0]).dtypes, tuple)
    assert ctypes.sizeof(ctypes.c_uint8 * 16) == len(bytes.fromhex(DEVICES[0].gid))
