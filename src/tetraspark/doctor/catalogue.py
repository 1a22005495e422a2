"""The catalogue: every check there is, by its stable ID, in the order in which they are read."""

from tetraspark.doctor import (
    address,
    api_key,
    burn_check,
    clock,
    disk,
    docker,
    gpu,
    history,
    image,
    kernel,
    kernel_log,
    left_over,
    link,
    local_engine,
    memory,
    model,
    nccl_conf,
    objects,
    port,
    rdma,
    reach,
)
from tetraspark.doctor.definition import Definition, Kind
from tetraspark.doctor.fabric_facts import FABRIC

BOTH: tuple[Kind, ...] = ("fleet", "local")
IMAGES = (objects.wanted, docker.INFO)
CHECKPOINT = {
    "CHECKPOINT.FOLDER": "model.path is there, as each node's login means it",
    "CHECKPOINT.CONFIG": "config.json can be read",
    "CHECKPOINT.SHARDS": "every shard of the index is there, and whole",
    "CHECKPOINT.SIZE": "the shards are as large as the index says",
    "CHECKPOINT.TOKENIZER": "the tokenizer is there",
    "CHECKPOINT.CHAT_TEMPLATE": "which file supplies the chat template",
    "CHECKPOINT.LINKS": "no file is a link out of the folder, where a container cannot see it",
}
ENGRAM = {
    "ENGRAM.MANIFEST": "the rank's shards have their manifests",
    "ENGRAM.ROWS": "the shards are those of this rank",
    "ENGRAM.SIZE": "the shards are as large as their manifests say",
}

CATALOGUE: tuple[Definition, ...] = (
    Definition(
        reach.SSH, "the node is reached over ssh, without a password", node=reach.reached
    ),
    Definition(
        reach.PYTHON, "python3 runs the probe", node=reach.answered, kinds=BOTH
    ),
    Definition(
        "TIME.SKEW", "the clocks of the nodes agree", fleet=clock.skew
    ),
    Definition(
        "KERNEL.RELEASE", "the kernel is none on which RDMA memory fails",
        (kernel.RELEASE_AND_MEMORY,), node=kernel.known_kernel,
    ),
    Definition(
        "KERNEL.EQUAL", "the same kernel on every node", (kernel.RELEASE,), fleet=kernel.kernels
    ),
    Definition(
        "KERNEL.DRIVER", "the same GPU driver on every node", (gpu.PRESENT,), fleet=kernel.drivers
    ),
    Definition(
        "KERNEL.FIRMWARE", "the same firmware of board and NIC on every node",
        (kernel.BOARD, FABRIC), fleet=kernel.firmware,
    ),
    Definition(
        "HISTORY.VERSIONS", "kernel and driver as when the line was last ready",
        (kernel.RELEASE, gpu.PRESENT), node=history.versions,
    ),
    Definition(
        "HISTORY.MEMORY", "as much memory as when the line was last ready",
        (memory.WANTED,), node=history.memory,
        idle=True,
    ),
    Definition(
        "DOCKER.DAEMON", "Docker runs, and this login may use it",
        (docker.INFO,), node=docker.daemon, required=True,
    ),
    Definition(
        "DOCKER.VERSION", "Docker is recent enough", (docker.INFO,), node=docker.version
    ),
    Definition(
        "DOCKER.GPU", "Docker can give a container the GPU",
        (docker.INFO,), node=docker.gpu_runtime,
    ),
    Definition(
        "DOCKER.MEMLOCK", "Docker can let a container lock memory",
        (docker.INFO, docker.LIMIT), node=docker.memlock,
    ),
    Definition(
        "GPU.PRESENT", "the driver reaches a GPU",
        (gpu.PRESENT,), node=gpu.present, required=True,
    ),
    Definition(
        "GPU.IDLE", "nothing computes on the GPU", (gpu.IDLE,), node=gpu.idle, required=True,
        idle=True,
    ),
    Definition(
        "IMAGE.PRESENT", "the image is there", IMAGES, node=image.present, required=True
    ),
    Definition(
        "IMAGE.ARCHITECTURE", "the image is of the node's architecture",
        (*IMAGES, image.MACHINE), node=image.architecture,
    ),
    Definition(
        "IMAGE.RECIPE", "the image was built from what the site asks for",
        IMAGES, node=image.labels,
    ),
    Definition(
        "IMAGE.ENVIRONMENT", "the image sets no interface, device or preload of its own",
        IMAGES, node=image.environment,
    ),
    Definition(
        "IMAGE.EQUAL", "the same image on every node, by layers, labels and configuration",
        IMAGES, fleet=image.equal,
    ),
    Definition(
        "ENGINE.VERSION", "the engine of a local line is installed",
        (local_engine.WANTED,), node=local_engine.version, kinds=("local",), required=True,
    ),
    *(
        Definition(
            id, title, (model.checkpoint_wanted,), node=model.checkpoint_judge(id), kinds=BOTH
        )
        for id, title in CHECKPOINT.items()
    ),
    *(
        Definition(id, title, (model.engram_wanted,), node=model.engram_judge(id))
        for id, title in ENGRAM.items()
    ),
    Definition(
        "WEIGHTS.VOLUME", "no docker volume with other settings than the site's",
        (model.volume_wanted,), node=model.volume,
    ),
    Definition(
        "DISK.ROOM", "room for what is not there yet",
        (disk.wanted, *IMAGES), fleet=disk.room, kinds=BOTH,
    ),
    Definition(
        "MEMORY.AVAILABLE", "MemAvailable is enough for a start",
        (memory.WANTED,), node=memory.available, kinds=BOTH, required=True,
        idle=True,
    ),
    Definition(
        "MEMORY.FREE", "the page cache leaves memory free, which is all the GPU counts",
        (memory.WANTED,), node=memory.free,
        idle=True,
    ),
    Definition(
        "MEMORY.FRAGMENTED", "free memory is left in large blocks",
        (memory.WANTED,), node=memory.fragmented,
    ),
    Definition(
        "LOG.NVRM", "the GPU driver has not run out of memory since boot",
        (kernel_log.WANTED,), node=kernel_log.nvrm,
    ),
    Definition(
        "LOG.AER", "no PCIe error since boot", (kernel_log.WANTED,), node=kernel_log.aer
    ),
    Definition(
        "API.KEY", "the API key file has a key that its owner alone can read",
        fleet=api_key.usable, kinds=BOTH,
    ),
    Definition(
        "PORT.API", "the port of the API is free, and who has it",
        (port.api_wanted,), node=port.api, kinds=BOTH,
        idle=True,
    ),
    Definition(
        "PORT.RENDEZVOUS", "the port at which the ranks meet is free, and who has it",
        (port.rendezvous_wanted,), node=port.rendezvous,
        idle=True,
    ),
    Definition(
        "ADDRESS.OWN", "the node has the address that the site gives it",
        (FABRIC,), node=address.own,
    ),
    Definition(
        "ADDRESS.ROUTES", "the other nodes are reached over the fabric, or that address",
        (FABRIC, address.routes_wanted), node=address.routes,
    ),
    Definition(
        "RDMA.VERBS", "the device files of RDMA are there", (rdma.VERBS,), node=rdma.verbs
    ),
    Definition(
        "RDMA.DEVICE", "each device of the site is on its node",
        (FABRIC,), node=rdma.device, required=True,
    ),
    Definition(
        "RDMA.PORT", "each device's port is active", (FABRIC,), node=rdma.port, required=True
    ),
    Definition(
        "RDMA.GID", "each device has a RoCE v2 GID of an address of its own",
        (FABRIC,), node=rdma.gid, required=True,
    ),
    Definition(
        "RDMA.GID_COMMON", "one GID index fits all devices of a node",
        (FABRIC,), node=rdma.common_index,
    ),
    Definition(
        "RDMA.MTU", "the active RDMA MTU is at least fabric.min_rdma_mtu",
        (FABRIC,), node=rdma.mtu,
    ),
    Definition(
        "LINK.MTU", "the same MTU on both ends of every link", (FABRIC,), fleet=link.mtu_everywhere
    ),
    Definition(
        "LINK.PCIE", "PCIe of each function at full speed and width", (FABRIC,), node=link.pcie
    ),
    Definition(
        "LINK.SPEED", "the cable of each function at full speed", (FABRIC,), node=link.speed
    ),
    Definition(
        "LINK.TWIN", "both functions of a cage are up, or both down", (FABRIC,), node=link.twins
    ),
    Definition(
        "NCCL.CONF", "no configuration file of NCCL on the node",
        (nccl_conf.WANTED,), node=nccl_conf.present,
    ),
    Definition(
        "LINE.CONTAINERS", "no container of this line, running or left over",
        (left_over.CONTAINERS, docker.INFO), node=left_over.containers,
        idle=True,
    ),
    Definition(
        "LINE.RESTARTS", "no container that starts again and again",
        (left_over.CONTAINERS, *IMAGES), node=left_over.restarts,
    ),
    Definition(
        "LINE.SEGMENTS", "no shared memory of an earlier run",
        (left_over.SEGMENTS, left_over.CONTAINERS), node=left_over.segments,
        idle=True,
    ),
    Definition(
        "BURN.CLOCK", "the GPU's clock holds under load (only with --burn)",
        (burn_check.WANTED,), fleet=burn_check.clocks, required=True, burns=True,
    ),
)  # fmt: skip
"""IDs are an interface: one may be added, none may change its meaning."""
