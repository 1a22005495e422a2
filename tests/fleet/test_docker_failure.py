"""What Docker prints when it fails, read without a daemon."""

import pytest

from tetraspark.fleet.docker_failure import KINDS, classify, docker_problem
from tetraspark.fleet.login import Login

SAID = {
    "permission denied while trying to connect to the Docker daemon socket at "
    "unix:///var/run/docker.sock: Get ...: dial unix /var/run/docker.sock: connect: "
    "permission denied": "no permission",
    "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock": (
        "no permission"
    ),
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. "
    "Is the docker daemon running?": "no daemon",
    "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is "
    "correct and if the daemon is running": "no daemon",
    "sh: 1: exec: docker: not found": "no Docker",
    "bash: line 1: docker: command not found": "no Docker",
    'docker: Error response from daemon: could not select device driver "" with capabilities: '
    "[[gpu]].": "no GPU runtime",
    "docker: Error response from daemon: unknown or invalid runtime name: nvidia.": (
        "no GPU runtime"
    ),
    'docker: Error response from daemon: Conflict. The container name "/tetraspark-line-r0" is '
    'already in use by container "3a9d". You have to remove (or rename) that container to be able '
    "to reuse that name.": "name taken",
    'docker: Error response from daemon: invalid mount config for type "bind": bind source path '
    "does not exist: /srv/modle.": "no such folder",
    "docker: Error response from daemon: error gathering device information while adding custom "
    'device "/dev/infiniband": no such file or directory.': "no such device",
    "ERROR: failed to initialize builder: invalid database": "builder database",
    "failed to solve: failed to prepare sha256:4ac69ee655da as 0kzh8: parent snapshot "
    "sha256:74ddd0ec08fa does not exist: not found": "broken build cache",
    "failed to get layer sha256:00ff: layer does not exist": "broken build cache",
    "Error processing tar file(exit status 1): write /x: no space left on device": "disk full",
    "failed to register layer: ApplyLayer exit status 1 stdout:  stderr: write /usr/lib/x: "
    "no space left on device": "disk full",
    "manifest verification failed for digest sha256:0123": "digest mismatch",
    "filesystem layer verification failed for digest sha256:0123": "digest mismatch",
    'failed commit on ref "manifest-sha256:01": unexpected commit digest sha256:02, expected '
    "sha256:01": "digest mismatch",
    "no matching manifest for linux/amd64 in the manifest list entries": "other platform",
    "image with reference x was found but does not match the specified platform: wanted "
    "linux/arm64, actual: linux/amd64": "other platform",
    "standard_init_linux.go:228: exec user process caused: exec format error": "other platform",
    "exec /bin/sh: exec format error\nThe command '/bin/sh -c true' returned a non-zero code: 1": (
        "other platform"
    ),
    "Error response from daemon: manifest for x@sha256:01 not found: manifest unknown: "
    "manifest unknown": "no such image",
    "pull access denied for x, repository does not exist or may require 'docker login'": (
        "no such image"
    ),
    "unauthorized: authentication required": "no login at the registry",
    "toomanyrequests: You have reached your pull rate limit.": "too many pulls",
    "Get https://registry-1.docker.io/v2/: dial tcp: lookup registry-1.docker.io: no such host": (
        "registry out of reach"
    ),
    "Get https://registry-1.docker.io/v2/: net/http: request canceled while waiting for "
    "connection (Client.Timeout exceeded while awaiting headers)": "registry out of reach",
    "COPY failed: file not found in build context or excluded by .dockerignore: stat x: file "
    "does not exist": "file not in the context",
    'failed to solve: failed to compute cache key: "/x" not found: not found': (
        "file not in the context"
    ),
    "The command '/bin/sh -c exit 3' returned a non-zero code: 3": "command failed",
    'failed to solve: process "/bin/sh -c exit 3" did not complete successfully: exit code: 3': (
        "command failed"
    ),
    "something new": "failed",
}


@pytest.mark.parametrize(("text", "name"), SAID.items(), ids=range(len(SAID)))
def test_each_message_has_its_kind(text: str, name: str) -> None:
    assert classify(text).name == name


FAILED = "The command '/bin/sh -c x' returned a non-zero code: 1"


@pytest.mark.parametrize("said", ["unauthorized", "connection refused", "file does not exist"])
def test_what_a_steps_command_printed_is_not_what_docker_says(said: str) -> None:
    assert classify(f"pip: {said}\n{FAILED}").name == "command failed"


def test_a_full_disk_is_told_by_the_command_that_met_it() -> None:
    assert classify(f"OSError: [Errno 28] No space left on device\n{FAILED}").name == "disk full"


def test_every_kind_is_shown_by_a_message() -> None:
    assert {kind.name for kind in KINDS} <= set(SAID.values())


def test_the_problem_names_node_phase_cause_and_what_to_type() -> None:
    login = Login("spark2", "10.0.0.2", "bob")
    text = "DEPRECATED: The legacy builder is deprecated\n" + next(iter(SAID))
    problem = docker_problem(login, "build", text)
    assert problem.where == "spark2 docker"
    assert problem.seen.startswith("build: no permission: permission denied while trying")
    assert problem.fix.startswith("ssh bob@10.0.0.2 'sudo usermod -aG docker bob'")


def test_every_fix_is_one_line_without_gaps() -> None:
    for text in SAID:
        problem = docker_problem(Login("spark2", "10.0.0.2"), "base", text, "name@sha256:01")
        assert "{" not in problem.fix
        assert "\n" not in problem.fix + problem.seen
