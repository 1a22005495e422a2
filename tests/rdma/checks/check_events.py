"""Asynchronous events of a device: each one ends in a diagnosis that every rank raises."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tests.rdma.injection  # noqa: F401  # gives the ranks their command "inject"
from tests.collectives.cluster import Cluster
from tests.rdma.checks.check_faults import BOUND_S, SETTINGS, WIRING
from tests.rdma.network import over

Start = Callable[..., Cluster]


def root_of(cluster: Start, event: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let three ranks wait, give rank 1 the event on device 1; return root and device."""
    ranks = cluster(4, settings=SETTINGS, transport=over(WIRING))
    assert [answer[0] for answer in ranks.opened] == ["ok"] * 4, ranks.opened
    answers = ranks.call([0, 1, 2, 3], "reduce", (1024,), torch.bfloat16, 1, "new")
    assert [answer[0] for answer in answers] == ["ok"] * 4, answers
    for rank in (0, 2, 3):
        ranks.tell(rank, "reduce", (1024,), torch.bfloat16, 1, "new")
    assert ranks.call([1], "inject", event, 1, 2, 1) == [("ok", None)]
    ranks.tell(1, "check", 20.0, False)
    answers = [ranks.answer(rank) for rank in range(4)]
    assert [answer[:2] for answer in answers] == [("error", "CollectiveError")] * 4, answers
    assert max(answer[3] for answer in answers) < BOUND_S
    root: dict[str, Any] = answers[0][2]
    print(f"\n{event}: {root}")
    assert all(answer[2] == root for answer in answers)
    ((_, state),) = ranks.call([1], "state")
    device: dict[str, Any] = state["details"]["devices"][1]
    return root, device


@pytest.mark.parametrize(
    ("event", "kind", "peer", "counted", "words"),
    [
        ("queue pair", "lane", 2, "queue_pair", "n1r1: event: local work queue catastrophic error"),
        ("device", "port", 1, "device_fatal", "n1r1: event: local catastrophic error"),
    ],
)
def test_a_fatal_event_is_named(
    cluster: Start, event: str, kind: str, peer: int, counted: str, words: str
) -> None:
    root, device = root_of(cluster, event)
    assert (root["kind"], root["peer"], root["lane"]) == (kind, peer, 1)
    assert words in root["detail"]
    assert device["events"][counted] == 1
