"""What a group refuses before anything is sent, and what its state says."""

import json
from collections.abc import Callable

import pytest
import torch

from tests.collectives.fakes import Opened
from tests.collectives.oracle import shard
from tetraspark.collectives.fake import until
from tetraspark.collectives.group import Group

Open = Callable[..., Opened]


@pytest.fixture
def group(open_fake: Open) -> Group:
    return open_fake(2).groups[0]


def test_fits_depends_on_size_and_dtype_alone(group: Group) -> None:
    assert [group.fits(n, torch.bfloat16) for n in (0, 8, 16, 4096, 4112)] == [
        False, False, True, True, False,
    ]  # fmt: skip
    fitting = [torch.bfloat16, torch.float16, torch.float32]
    others = [torch.float64, torch.int32, torch.bool, torch.complex64]
    assert all(group.fits(64, dtype) for dtype in fitting)
    assert not any(group.fits(64, dtype) for dtype in others)
    assert [group.fits_gather(n) for n in (0, 2048, 2049)] == [True, True, False]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.all_reduce(torch.zeros(3)), ValueError, "12 bytes of torch.float32"),
        (lambda g: g.all_reduce(torch.zeros(2048)), ValueError, "at most 4096"),
        (lambda g: g.all_reduce(torch.zeros(4).int()), ValueError, "do not fit"),
        (lambda g: g.all_reduce(torch.zeros(4, dtype=torch.complex64)), TypeError, "complex64"),
        (lambda g: g.all_reduce(torch.zeros(4, device="meta")), TypeError, "on the CPU"),
        (lambda g: g.all_reduce(torch.zeros(4), torch.zeros(8)), ValueError, r"wanted .*\[4\]"),
        (lambda g: g.all_reduce(torch.zeros([1] * 9 + [4])), ValueError, "10 dimensions"),
        (lambda g: g.all_gather(torch.zeros(4096)), ValueError, "16384 bytes does not fit"),
        (lambda g: g.all_gather(torch.zeros(())), ValueError, "wanted the first"),
        (lambda g: g.all_gather(torch.zeros(2, 2, 2), 1), ValueError, "dim 1"),
        (lambda g: g.all_gather(torch.zeros(2), -1, [3, 2]), ValueError, "the one of rank 0 2"),
        (lambda g: g.all_gather(torch.zeros(2), -1, [2]), ValueError, "wanted 2"),
        (lambda g: g.all_gather(torch.zeros(2), 0, [2, 3]), ValueError, "last dimension only"),
        (
            lambda g: g.begin_all_reduce(torch.zeros(4), torch.zeros(4, 2)[:, 0]),
            ValueError, "contiguous",
        ),
    ],
)  # fmt: skip
def test_misuse_is_refused_before_anything_is_sent(
    group: Group, call: Callable[[Group], object], error: type[Exception], words: str
) -> None:
    before = group.state()["sequence"]
    with pytest.raises(error, match=words):
        call(group)
    assert group.state()["sequence"] == before


def test_a_strided_input_is_copied_not_declined(open_fake: Open) -> None:
    opened = open_fake(2)
    wide = {rank: shard(0, rank, (8, 2), torch.float32) for rank in (0, 1)}
    outs = {rank: torch.empty(8) for rank in (0, 1)}
    steps = {}
    for rank, group in opened.groups.items():
        strided = wide[rank][:, 0] if rank == 0 else wide[rank][:, 0].contiguous()
        steps[rank] = group.begin_all_reduce(strided, outs[rank]).step
    assert until(opened.fabric, steps, 10.0) == {0: True, 1: True}
    assert torch.equal(outs[0], wide[0][:, 0] + wide[1][:, 0])


def test_a_second_operation_waits_its_turn(group: Group) -> None:
    group.begin_all_reduce(torch.zeros(4), torch.zeros(4))
    with pytest.raises(RuntimeError, match="another operation"):
        group.begin_all_reduce(torch.zeros(4), torch.zeros(4))


def test_the_state_is_json_and_counts(open_fake: Open) -> None:
    opened = open_fake(3, lanes=2)
    outs = {rank: torch.empty(64) for rank in range(3)}
    steps = {
        rank: group.begin_all_reduce(torch.ones(64), outs[rank]).step
        for rank, group in opened.groups.items()
    }
    assert opened.groups[0].state()["verdict"] == "waiting"
    until(opened.fabric, steps, 10.0)
    opened.fabric.tick()
    state = json.loads(json.dumps(opened.groups[0].state()))
    assert (state["verdict"], state["sequence"], state["operations"]) == ("ready", 5, 5)
    assert [peer["rank"] for peer in state["peers"]] == [1, 2]
    for peer in state["peers"]:
        # Four probes and one all-reduce; each first stripe carries a 128-byte header.
        total = 2 * 4096 + 2 * 2048 + 256 + 5 * 128
        assert sum(lane["bytes"] for lane in peer["lanes"]) == total
        assert {lane["writes"] for lane in peer["lanes"]} == {5}


def test_a_closed_group_says_so(group: Group) -> None:
    group.close()
    assert group.close() == {}
    assert group.state()["verdict"] == "closed"
    for call in (lambda: group.all_reduce(torch.zeros(4)), lambda: group.check(1.0)):
        with pytest.raises(RuntimeError, match="the group is closed"):
            call()


def test_a_step_after_the_close_is_refused(group: Group) -> None:
    pending = group.begin_all_reduce(torch.zeros(4), torch.zeros(4))
    group.close()
    with pytest.raises(RuntimeError, match="the group is closed"):
        pending.step()
