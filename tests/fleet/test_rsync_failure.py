"""What rsync's codes and messages mean, read without a network."""

import pytest

from tetraspark.fleet.login import Login
from tetraspark.fleet.rsync_failure import rsync_problem

LOGIN = Login("spark2", "10.0.0.2", "bob")
TARGET = ".cache/tetraspark/ring/context"
CASES = {
    "full": (
        11,
        'rsync: [receiver] write failed on "/home/bob/x": No space left on device (28)\n'
        "rsync error: error in file IO (code 11) at receiver.c(393) [receiver=3.2.7]",
        "room on the node's disk",
    ),
    "full in between": (
        23,
        'rsync: [generator] recv_generator: mkdir "/x" failed: No space left on device (28)\n'
        "rsync error: some files/attrs were not transferred (code 23)",
        "room on the node's disk",
    ),
    "quota": (11, "rsync: write failed: Disk quota exceeded (122)", "room on the node's disk"),
    "shell": (
        12,
        "protocol version mismatch -- is your shell clean?\n"
        "rsync error: error in rsync protocol data stream (code 12) at io.c(228)",
        "a login shell that prints nothing of its own",
    ),
    "missing": (12, "bash: line 1: rsync: command not found", "rsync on the node"),
    "dash": (127, "sh: 1: exec: rsync: not found", "rsync on the node"),
    "denied": (
        23,
        'rsync: [receiver] mkstemp "/home/bob/.x" failed: Permission denied (13)',
        "a folder that the login can write",
    ),
    "read-only": (
        23,
        'rsync: [generator] mkdir "/x" failed: Read-only file system (30)',
        "a file system that can be written",
    ),
    "silent": (
        30,
        "rsync error: timeout in data send/receive (code 30) at io.c(200) [sender=3.2.7]",
        "a node that answers to the end",
    ),
    "vanished": (
        24,
        'file has vanished: "/tmp/x"\nrsync warning: some files vanished (code 24)',
        "a source that stays as it is",
    ),
    "new": (99, "rsync error: something (code 99)", "the whole folder on the node"),
}


@pytest.mark.parametrize(("rc", "text", "wanted"), CASES.values(), ids=CASES)
def test_each_failure_has_its_advice(rc: int, text: str, wanted: str) -> None:
    problem = rsync_problem(LOGIN, rc, text, TARGET)
    assert problem.where == f"spark2:{TARGET}"
    assert problem.wanted == wanted
    assert f"rsync failed with {rc} (" in problem.seen
    assert "\n" not in problem.seen + problem.fix


def test_the_cause_is_shown_and_not_rsyncs_closing_words() -> None:
    rc, text, _ = CASES["full"]
    assert "No space left on device" in rsync_problem(LOGIN, rc, text, TARGET).seen
