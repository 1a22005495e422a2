"""The command that runs one rank of a fleet in a container of its node. Pure."""

from collections.abc import Sequence

from tetraspark.fleet.container import container_name
from tetraspark.fleet.node_folder import key_file, shared_folder
from tetraspark.line import settings
from tetraspark.line.mounts import engram_mount, nccl_mount
from tetraspark.line.plan import Setting
from tetraspark.site.load import LoadedSite
from tetraspark.weights.mount import bind, model_mount

KEY_MOUNT = "/run/tetraspark/api-key"
RUN_MOUNT = "/run/tetraspark/run"
# What a container needs for RDMA: the verbs devices, locked memory, the host's own network.
# Its shared memory is its own, so that none is left when it ends; its process 1 passes signals
# on; its log is of the kind that Docker can always read, and cannot fill the disk.
CONTAINER = (
    "--network=host",
    "--shm-size=16g",
    "--init",
    "--log-driver=json-file",
    "--log-opt=max-size=64m",
    "--log-opt=max-file=8",
    "--gpus=all",
    "--device=/dev/infiniband",
    "--cap-add=IPC_LOCK",
    "--ulimit=memlock=-1",
    "--restart=no",
)


def docker_run(
    loaded: LoadedSite, found: Sequence[Setting], rank: int, home: str
) -> tuple[str, ...]:
    """Return the docker command of one rank; `home` is the login's on its node."""
    site = loaded.site
    assert site.image is not None
    mounts = [
        model_mount(site, rank, home),
        engram_mount(site, rank, home),
        nccl_mount(loaded, rank, home),
        bind(f"{home}/{shared_folder(site.name)}", RUN_MOUNT, writable=True),
    ]
    if rank == 0 and site.api.key_file is not None:
        mounts.append(bind(f"{home}/{key_file(site.name)}", KEY_MOUNT))
    return (
        *("docker", "run", "--detach", f"--name={container_name(site.name, rank)}", *CONTAINER),
        *(word for mount in mounts for word in mount),
        *(
            word
            for variable, value in settings.env_of(found, rank)
            for word in ("--env", f"{variable}={value}")
        ),
        site.image.tag,
        *("python3", "-m", "sglang.launch_server", *settings.argv_of(found, rank)),
    )
