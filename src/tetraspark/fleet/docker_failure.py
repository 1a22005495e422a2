"""What Docker says when it fails, and what to do about it. Pure: text in, a problem out."""

import re

from tetraspark.errors import Problem
from tetraspark.fleet.failure import Kind, first_kind, kind
from tetraspark.fleet.login import Login

# In a fix, `{ssh}` is the command that reaches the node, `{user}` the login there.
KINDS = (
    kind(
        "no Docker",
        r"docker: (command )?not found|exec: docker: not found|docker: No such file",
        "Docker on the node",
        "{ssh} sudo apt-get install docker.io",
    ),
    kind(
        "no permission",
        r"permission denied while trying to connect to the (Docker|docker)"
        r"|docker\.sock: (connect|connection): permission denied",
        "a login that may use Docker",
        "{ssh} 'sudo usermod -aG docker {user}'; groups count from the next login on",
    ),
    kind(
        "no daemon",
        r"Cannot connect to the Docker daemon|[Ff]ailed to connect to the docker API"
        r"|Is the docker daemon running",
        "a running Docker daemon",
        "{ssh} sudo systemctl start docker",
    ),
    kind(
        "no GPU runtime",
        r"could not select device driver .*gpu|unknown or invalid runtime name: nvidia"
        r"|nvidia-container-cli: (initialization|device) error",
        "the NVIDIA container runtime",
        "{ssh} 'sudo nvidia-ctk runtime configure --runtime=docker && "
        "sudo systemctl restart docker'",
    ),
    kind(
        "name taken",
        r"The container name .* is already in use",
        "a node without a container of this name, which is not one of this line",
        "{ssh} docker ps --all; then remove it: {ssh} docker rm --force NAME",
    ),
    kind(
        "no such folder",
        r"bind source path does not exist",
        "the folder on the node",
        "put it there, or correct its path in the site file; {ssh} df -h",
    ),
    kind(
        "no such device",
        r"error gathering device information",
        "the device on the node: a loaded driver",
        "{ssh} 'ls -l /dev/infiniband; rdma link'",
    ),
    kind(
        "disk full",
        r"[Nn]o space left on device|[Dd]isk quota exceeded",
        "room for the image on the node's disk",
        "{ssh} docker system df; then free some: {ssh} docker builder prune",
    ),
    kind(
        "builder database",
        r"failed to initialize builder|invalid database|metadata_v2\.db|cache\.db: ",
        "a builder whose database can be read",
        "{ssh} 'sudo systemctl stop docker && sudo mv /var/lib/docker/buildkit "
        "/var/lib/docker/buildkit.broken && sudo systemctl start docker'",
    ),
    kind(
        "broken build cache",
        r"parent snapshot \S+ does not exist|snapshot \S+ does not exist|layer does not exist"
        r"|failed to (get|register) layer|failed to prepare (sha256:)?\w+ as |missing parent",
        "a build cache with all its layers",
        "{ssh} docker builder prune --all --force",
    ),
    kind(
        "digest mismatch",
        r"manifest verification failed for digest|(layer|content) verification failed"
        r"|unexpected commit digest|failed commit on ref|does not match (the )?(expected )?digest",
        "the image that the digest names: a proxy or registry serves another one",
        "correct image.base, or find out who answers for the registry; then build again",
    ),
    kind(
        "other platform",
        r"no matching manifest for|does not match the (specified|detected host) platform"
        r"|exec format error",
        "a base image for the platform of the node",
        "{ssh} uname -m; then pin the digest for it: docker manifest inspect IMAGE",
    ),
    kind(
        "no login at the registry",
        r"unauthorized|authentication required|no basic auth credentials",
        "a login at the registry",
        "{ssh} docker login",
    ),
    kind(
        "too many pulls",
        r"toomanyrequests",
        "a registry that answers",
        "wait, or log in: {ssh} docker login",
    ),
    kind(
        "no such image",
        r"manifest unknown|pull access denied|repository .* not found|No such image"
        r"|[Nn]o such manifest|reference does not exist",
        "an image that the registry has",
        "correct image.base; {ssh} docker images --digests",
    ),
    kind(
        "registry out of reach",
        r"no such host|server misbehaving|Temporary failure in name resolution|i/o timeout"
        r"|TLS handshake timeout|network is unreachable|no route to host|connection refused"
        r"|Client\.Timeout exceeded|connection reset by peer|context deadline exceeded|: EOF",
        "the base image on the node, or a way to its registry",
        "{ssh} docker pull {base}",
    ),
    kind(
        "file not in the context",
        r"(COPY|ADD) failed|failed to compute cache key|file does not exist|not found in build",
        "a Dockerfile that names files of its context",
        "correct the Dockerfile",
    ),
)
COMMAND_FAILED = kind(
    "command failed",
    r"returned a non-zero code: \d+|did not complete successfully: exit code: \d+"
    r"|executor failed running \[.*\]: exit code: \d+",
    "a build step that succeeds",
    "correct what the step did; its last lines are shown",
)
# Of what the command of a step printed, only this is more than its own business.
BEHIND_A_COMMAND = ("disk full", "other platform")
UNKNOWN = kind("failed", "", "a Docker that does what it is told", "{ssh} docker info")
NOISE = re.compile(
    r"^\s*$|See 'docker \w* ?--help'|DEPRECATED: The legacy builder|Install the buildx component"
    r"|\s*https://docs\.docker\.com|Dockerfile:\d+|-{5,}|\s*\d* \| |\s*>>> "
)


def classify(text: str) -> Kind:
    """Return the kind of failure that Docker's messages tell of."""
    found = first_kind(KINDS, text) or UNKNOWN
    if COMMAND_FAILED.text.search(text) and found.name not in BEHIND_A_COMMAND:
        return COMMAND_FAILED
    return found


def docker_problem(login: Login, phase: str, text: str, base: str = "IMAGE") -> Problem:
    """Return what a failed docker command means; `phase` is what it was for, `text` all it said."""
    found = classify(text)
    user = login.user or "$USER"
    fix = found.fix.format(ssh=f"ssh {login}", user=user, base=base)
    seen = f"{phase}: {found.name}: {found.cause(text, NOISE)}"
    return Problem(f"{login.node} docker", seen, found.wanted, fix)
