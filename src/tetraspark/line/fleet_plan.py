"""The plan of a line on several GPU nodes: one container a node, ranks in the order of [[nodes]].

Pure: what depends on a node's network (interfaces, GIDs) is named here without a value, and is
resolved on the node at each launch.
"""

from tetraspark.engine.api_key import KEY_FILE
from tetraspark.engine.label import API, RANK
from tetraspark.engine.split_env import NAMES as SPLIT_NAMES
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.rank import RankCommand
from tetraspark.line import settings
from tetraspark.line.plan import Plan, Setting
from tetraspark.line.settings import derived
from tetraspark.site import sampled_graph
from tetraspark.site.engines import ENGINES
from tetraspark.site.environment import TYPED_ENV
from tetraspark.site.load import LoadedSite

MODEL_MOUNT = "/model"
KEY_MOUNT = "/run/tetraspark/api-key"
DIST_PORT = 20000

MEMORY = "--mem-fraction-static"
FLAGS = (
    *(pair for pair in settings.FLAGS if pair[0] != MEMORY),
    *settings.SPECULATIVE_FLAGS,
)
AT_LAUNCH = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_GID_INDEX")
# What a container needs for RDMA: the verbs devices, locked memory, the host's own network.
CONTAINER = (
    "--network=host",
    "--ipc=host",
    "--gpus=all",
    "--device=/dev/infiniband",
    "--cap-add=IPC_LOCK",
    "--ulimit=memlock=-1",
    "--restart=no",
)


def fleet_plan(loaded: LoadedSite) -> Plan:
    """Compute the plan of a fleet site. Raises UsageError when it names no image."""
    site = loaded.site
    if site.image is None:
        where = loaded.origin("kind").where
        raise UsageError(Problem(where, "no [image]", "the image to run", "add [image]"))
    found = [*_flags(loaded), *_variables(loaded), *settings.told(), *settings.extra(loaded)]
    ranks = tuple(
        RankCommand(
            rank=rank,
            node=node.name,
            argv=_container(loaded, found, rank),
            env=(),
            port=site.api.port,
        )
        for rank, node in enumerate(site.nodes)
    )
    return Plan(
        line=site.name,
        kind="fleet",
        site=str(loaded.path.resolve()),
        site_sha256=loaded.sha256,
        engine=ENGINES[site.image.recipe],
        model=site.model.path,
        served_name=site.model.served_name,
        host=site.nodes[0].host or site.api.host,
        port=site.api.port,
        transport="off",
        ranks=ranks,
        settings=tuple(found),
    )


def _flags(loaded: LoadedSite) -> list[Setting]:
    site = loaded.site
    rendezvous = f"{site.nodes[0].host}:{site.engine.dist_port or DIST_PORT}"
    found = [
        derived("flag", "--model-path", MODEL_MOUNT, "where model.path is mounted", None),
        *settings.from_keys(loaded, FLAGS),
        Setting("flag", "--port", str(site.api.port), loaded.origin("api.port")),
        derived("flag", "--nnodes", str(len(site.nodes)), "number of [[nodes]]", None),
        derived("flag", "--dist-init-addr", rendezvous, "nodes[0].host, engine.dist_port", None),
        derived("flag", "--skip-server-warmup", None, "the launcher warms up itself", None),
    ]
    for rank in range(len(site.nodes)):
        found.append(derived("flag", "--node-rank", str(rank), "order of [[nodes]]", rank))
    return found + _memory(loaded)


def _memory(loaded: LoadedSite) -> list[Setting]:
    """The static share of memory, which the head may have of its own."""
    found = []
    for rank in range(len(loaded.site.nodes)):
        keys = ["engine.head_mem_fraction"] if rank == 0 else []
        for key in [*keys, "engine.mem_fraction"]:
            value = settings.value_of(loaded, key)
            if value is not None:
                found.append(Setting("flag", MEMORY, str(value), loaded.origin(key), rank))
                break
    return found


def _variables(loaded: LoadedSite) -> list[Setting]:
    found = [
        Setting("env", name, _text(settings.value_of(loaded, key)), loaded.origin(key))
        for name, key in TYPED_ENV.items()
        if key != "fabric.topology" and settings.value_of(loaded, key) is not None
    ]
    found += _sampled(loaded)
    found += [
        derived("env", name, None, "resolved on each node at launch", None) for name in AT_LAUNCH
    ]
    found.append(derived("env", "SGLANG_PLUGINS", "tetraspark", "receipts", None))
    found += _prefill_split(loaded)
    for rank, node in enumerate(loaded.site.nodes):
        fabric = loaded.site.fabric
        devices = node.devices or (fabric.devices if fabric else ())
        key = f"nodes[{rank}].devices" if node.devices else "fabric.devices"
        if devices:
            text = "=" + ",".join(devices)
            found.append(Setting("env", "NCCL_IB_HCA", text, loaded.origin(key), rank))
        found.append(derived("env", RANK, str(rank), "order of [[nodes]]", rank))
    api = loaded.site.api
    host = "127.0.0.1" if api.host == "0.0.0.0" else api.host
    found.append(derived("env", API, f"http://{host}:{api.port}", "the image's health check", 0))
    if api.key_file is not None:
        found.append(Setting("env", KEY_FILE, KEY_MOUNT, loaded.origin("api.key_file"), 0))
    return found


def _sampled(loaded: LoadedSite) -> list[Setting]:
    """What `speculative.sampled_in_graph` is for the engine of the image."""
    assert loaded.site.image is not None
    engine = ENGINES[loaded.site.image.recipe]
    wanted = settings.value_of(loaded, sampled_graph.KEY)
    origin = loaded.origin(sampled_graph.KEY)
    variables = sampled_graph.sampled_variables(engine, wanted)
    return [Setting("env", name, value, origin) for name, value in variables.items()]


def _prefill_split(loaded: LoadedSite) -> list[Setting]:
    """Both thresholds, or nothing: every rank scores every row then."""
    section = loaded.site.prefill_split
    if section is None:
        return []
    return [
        Setting("env", name, str(getattr(section, key)), loaded.origin(f"prefill_split.{key}"))
        for name, key in SPLIT_NAMES
    ]


def _text(value: object) -> str:
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return str(value)


def _container(loaded: LoadedSite, found: list[Setting], rank: int) -> tuple[str, ...]:
    """Return the docker command of one rank."""
    site = loaded.site
    assert site.image is not None
    name = f"tetraspark-{site.name}-r{rank}"
    mounts = [f"{site.model.path}:{MODEL_MOUNT}:ro"]
    if site.engram is not None and site.engram.dir is not None:
        folder = site.engram.worker_dir if rank and site.engram.worker_dir else site.engram.dir
        mounts.append(f"{folder}:/engram:ro")
    if rank == 0 and site.api.key_file is not None:
        key = loaded.resolve(site.api.key_file, "api.key_file")
        mounts.append(f"{key}:{KEY_MOUNT}:ro")
    return (
        *("docker", "run", "--detach", f"--name={name}", *CONTAINER),
        *(word for mount in mounts for word in ("--volume", mount)),
        *(
            word
            for variable, value in settings.env_of(found, rank)
            for word in ("--env", f"{variable}={value}")
        ),
        site.image.tag,
        *("python3", "-m", "sglang.launch_server", *settings.argv_of(found, rank)),
    )
