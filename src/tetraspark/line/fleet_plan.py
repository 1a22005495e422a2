"""The plan of a line on several GPU nodes: one container a node, ranks in the order of [[nodes]].

Pure. What depends on a node (its interfaces, the home of its login) comes from the launch, which
looks at the nodes each time; without one it is named and has no value.
"""

from tetraspark.engine.api_key import KEY_FILE
from tetraspark.engine.label import API, RANK, RUN_DIR
from tetraspark.engine.split_env import NAMES as SPLIT_NAMES
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.login import logins
from tetraspark.fleet.rank import RankCommand
from tetraspark.line import settings
from tetraspark.line.collective_settings import collective_settings
from tetraspark.line.docker_run import KEY_MOUNT, RUN_MOUNT, docker_run
from tetraspark.line.guard_settings import guards
from tetraspark.line.lanes import Lanes
from tetraspark.line.launch import Launch
from tetraspark.line.nccl_settings import nccl_names, nccl_settings
from tetraspark.line.plan import Plan, Setting
from tetraspark.line.settings import derived
from tetraspark.line.tuned import NOT_TUNED
from tetraspark.site import sampled_graph
from tetraspark.site.engines import ENGINES, RELEASE
from tetraspark.site.environment import TYPED_ENV
from tetraspark.site.hca import render
from tetraspark.site.load import LoadedSite
from tetraspark.site.serving import DIST_PORT
from tetraspark.weights.mount import MODEL_MOUNT

HCA = "NCCL_IB_HCA"
MEMORY = "--mem-fraction-static"
FLAGS = (
    *(pair for pair in settings.FLAGS if pair[0] != MEMORY),
    *settings.SPECULATIVE_FLAGS,
)
AT_LAUNCH = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def fleet_plan(
    loaded: LoadedSite, launch: Launch | None = None, lanes: Lanes | None = None
) -> Plan:
    """Compute the plan of a fleet site; `lanes` are those of one with verbs.

    Raises UsageError when it names no image, or a patched NCCL that no container can be given.
    """
    site = loaded.site
    if site.image is None:
        where = loaded.origin("kind").where
        raise UsageError(Problem(where, "no [image]", "the image to run", "add [image]"))
    found = [
        *_flags(loaded, launch),
        *_variables(loaded, launch),
        *collective_settings(loaded, NOT_TUNED, lanes),
        *settings.told(),
        *settings.extra(loaded),
    ]
    ranks = tuple(
        RankCommand(
            rank=rank,
            node=node.name,
            argv=docker_run(loaded, found, rank, launch[rank].home if launch else "~"),
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
        host=_host(loaded),
        port=site.api.port,
        transport=site.transport,
        ranks=ranks,
        settings=tuple(found),
        logins=logins(loaded, offline=True),
    )


def _host(loaded: LoadedSite) -> str:
    """Return where clients find the API: where it listens, on the head's address if that is all."""
    head, host = loaded.site.nodes[0].host, loaded.site.api.host
    return head if host == "0.0.0.0" and head else host


def _flags(loaded: LoadedSite, launch: Launch | None) -> list[Setting]:
    site = loaded.site
    head = launch.head_address if launch else site.nodes[0].host
    rendezvous = f"{head}:{site.engine.dist_port or DIST_PORT}"
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


def _variables(loaded: LoadedSite, launch: Launch | None) -> list[Setting]:
    assert loaded.site.image is not None
    is_release = ENGINES[loaded.site.image.recipe] == RELEASE
    found = [
        Setting("env", name, _text(settings.value_of(loaded, key)), loaded.origin(key))
        for name, key in TYPED_ENV.items()
        if key != "fabric.topology" and not (is_release and key.startswith("guards."))
        if settings.value_of(loaded, key) is not None
    ]
    found += guards(loaded) if is_release else []
    found += _sampled(loaded)
    found += _at_launch(loaded, launch)
    found.append(derived("env", "SGLANG_PLUGINS", "tetraspark", "receipts", None))
    found.append(derived("env", "SPT_NOENV", "1", "keeps the processes' variables readable", None))
    found.append(derived("env", RUN_DIR, RUN_MOUNT, "for the communicator's state", None))
    found += _prefill_split(loaded)
    for rank in range(len(loaded.site.nodes)):
        found.append(derived("env", RANK, str(rank), "order of [[nodes]]", rank))
    api = loaded.site.api
    host = "127.0.0.1" if api.host == "0.0.0.0" else api.host
    found.append(derived("env", API, f"http://{host}:{api.port}", "the image's health check", 0))
    if api.key_file is not None:
        found.append(Setting("env", KEY_FILE, KEY_MOUNT, loaded.origin("api.key_file"), 0))
    return found


def _at_launch(loaded: LoadedSite, launch: Launch | None) -> list[Setting]:
    """What is resolved on each node; before that, the devices as the site has them."""
    if launch is not None:
        return [
            *(nccl_settings(launch.nccl) if launch.nccl else ()),
            *(
                derived("env", name, value, f"resolved on {node.node} at launch", rank)
                for rank, node in enumerate(launch.nodes)
                for name, value in node.env.items()
            ),
        ]
    found = [
        derived("env", name, None, "resolved on each node at launch", None) for name in AT_LAUNCH
    ]
    reason = "NCCL's profile, resolved at launch"
    found += [derived("env", name, None, reason, None) for name in nccl_names(loaded)]
    fabric = loaded.site.fabric
    for rank, node in enumerate(loaded.site.nodes):
        devices = node.devices or (fabric.devices if fabric else ())
        key = f"nodes[{rank}].devices" if node.devices else "fabric.devices"
        if devices:
            found.append(Setting("env", HCA, render(devices), loaded.origin(key), rank))
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
