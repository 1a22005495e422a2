"""What the collectives refuse or fail with, as problems that a person can act on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tetraspark.collectives.failure import BuildError, CollectiveError, RefusedError
from tetraspark.collectives.local_lane import Refusal
from tetraspark.errors import Problem, RunError

WANTED = "every lane set up"
NO_DEVICES = (
    "ibv_devinfo -l; in a container: start it with "
    "--device=/dev/infiniband --ulimit memlock=-1 --network=host"
)


@contextmanager
def told(nodes: Sequence[str], rank: int) -> Iterator[None]:
    """Turn what lanes raise into RunError; `nodes` are by rank, `rank` is this one."""
    where = f"node {nodes[rank]}, rank {rank}"
    try:
        yield
    except RefusedError as error:
        raise RunError(*refused(error, nodes)) from error
    except CollectiveError as error:
        fix = "rdma link show, on the nodes of that lane; then start every rank again"
        raise RunError(Problem(where, str(error.root), "every lane to carry", fix)) from error
    except (BuildError, OSError, ValueError) as error:
        raise RunError(Problem(where, str(error), WANTED, next_command(str(error)))) from error


def refused(error: RefusedError, nodes: Sequence[str]) -> list[Problem]:
    """Return one problem a device, or one a rank where no device is to blame."""
    found: list[Problem] = []
    for rank, reason in error.reasons:
        devices = Refusal.parse_all(reason)
        for one in devices:
            where = f"node {one.node}, device {one.device}"
            found.append(Problem(where, one.seen, one.wanted, next_command(one.seen, one.device)))
        if not devices:
            where = f"node {nodes[rank]}, rank {rank}"
            found.append(Problem(where, reason, WANTED, next_command(reason)))
    return found


NEXT = (
    ("is not there", NO_DEVICES),
    ("is /dev/infiniband open?", NO_DEVICES),
    ("ibv_reg_mr", "ulimit -l unlimited; in a container: --ulimit memlock=-1"),
    ("MTU", "ibv_devinfo -d {device}; ip link set NETDEV mtu 9000"),
    ("usable GIDs", "name the address: --devices {device}@ADDRESS"),
    ("GID", "ibv_devinfo -v -d {device}; ip -brief address"),
    ("only ", "ibv_devinfo -v -d {device}; ip -brief address"),
    ("PCI domain", "ls -l /sys/class/infiniband; list devices of different domains"),
    ("rank 0 has", "install one tetraspark on every node"),
    ("verbs.h is missing", "apt-get install libibverbs-dev ibverbs-providers"),
    ("compiler", "apt-get install gcc libc6-dev"),
    ("", "rdma link show"),
)
"""What to type next, by a part of what was seen; the first that fits."""


def next_command(seen: str, device: str = "DEVICE") -> str:
    """Return what to type to look closer."""
    return next(command for part, command in NEXT if part in seen).format(device=device)
