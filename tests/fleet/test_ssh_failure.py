"""What OpenSSH prints, read without a network."""

import pytest

from tetraspark.fleet.login import Login
from tetraspark.fleet.ssh_failure import classify, ssh_problem

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Offending ED25519 key in /home/alice/.ssh/known_hosts:3
Host key for 10.0.0.2 has changed and you have requested strict checking.
Host key verification failed.
"""
PROTECTED = """\
@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @
Permissions 0644 for '/home/alice/.ssh/id' are too open.
Load key "/home/alice/.ssh/id": bad permissions
bob@10.0.0.2: Permission denied (publickey).
"""
SAID = {
    "bob@10.0.0.2: Permission denied (publickey,password).": "permission denied",
    "Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures": (
        "permission denied"
    ),
    "ssh: connect to host 10.0.0.2 port 22: Connection timed out": "timed out",
    "ssh: connect to host 10.0.0.2 port 22: Connection refused": "refused",
    "ssh: connect to host 10.0.0.2 port 22: No route to host": "no route",
    "ssh: connect to host 10.0.0.2 port 22: Network is unreachable": "no route",
    "ssh: Could not resolve hostname spark2: Name or service not known": "unknown host",
    "ssh: Could not resolve hostname spark2: Temporary failure in name resolution": "unknown host",
    "Connection timed out during banner exchange\nConnection to 10.0.0.2 port 22 timed out": (
        "no answer of sshd"
    ),
    "kex_exchange_identification: Connection closed by remote host": "closed at login",
    "kex_exchange_identification: read: Connection reset by peer": "closed at login",
    "Connection closed by UNKNOWN port 65535": "closed at login",
    "Host key verification failed.": "host key unknown",
    "No ED25519 host key is known for node1 and you have requested strict checking.\n"
    "Host key verification failed.": "host key unknown",
    CHANGED: "host key changed",
    PROTECTED: "key file unusable",
    "no such identity: /home/alice/.ssh/id: No such file or directory\n"
    "bob@10.0.0.2: Permission denied (publickey).": "key file unusable",
    "/home/alice/.ssh/config: line 3: Bad configuration option: hots\n"
    "/home/alice/.ssh/config: terminating, 1 bad configuration options": "configuration",
    "Bad owner or permissions on /home/alice/.ssh/config": "configuration",
    "Timeout, server 10.0.0.2 not responding.": "session died",
    "something new": "unknown",
}


@pytest.mark.parametrize(("text", "name"), SAID.items(), ids=range(len(SAID)))
def test_each_message_has_its_kind(text: str, name: str) -> None:
    assert classify(text, opened=False).name == name


@pytest.mark.parametrize(
    "text",
    ["", "half a line of the command", "client_loop: send disconnect: Broken pipe\n"],
)
def test_an_open_session_that_ends_without_a_cause_has_died(text: str) -> None:
    assert classify(text, opened=True).name == "session died"


def test_a_session_that_had_to_be_opened_anew_tells_why_it_could_not() -> None:
    text = "ssh: connect to host 10.0.0.2 port 22: Connection timed out"
    assert classify(text, opened=True).name == "timed out"


def test_the_problem_names_node_login_phase_and_what_to_type() -> None:
    text = "Warning: Permanently added '10.0.0.2'.\nbob@10.0.0.2: Permission denied (publickey)."
    problem = ssh_problem(Login("spark2", "10.0.0.2", "bob"), "login", text, opened=False)
    assert problem.where == "spark2 (ssh bob@10.0.0.2)"
    assert problem.seen == (
        "ssh failed: permission denied, during login: bob@10.0.0.2: Permission denied (publickey)."
    )
    assert problem.fix == "ssh-copy-id bob@10.0.0.2"


def test_every_fix_is_one_line_without_gaps() -> None:
    for text in SAID:
        problem = ssh_problem(Login("spark2", "10.0.0.2"), "login", text, opened=False)
        assert "{" not in problem.fix
        assert "\n" not in problem.fix + problem.seen
