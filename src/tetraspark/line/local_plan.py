"""The plan of a line on one CPU-only machine: every rank a node of its own, on loopback."""

from tetraspark.engine.api_key import KEY_FILE
from tetraspark.engine.standins import path_of
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.rank import RankCommand
from tetraspark.fleet.runner import Inventory
from tetraspark.line import settings
from tetraspark.line.collective_settings import collective_settings
from tetraspark.line.guard_settings import guards
from tetraspark.line.plan import Plan, Setting
from tetraspark.line.settings import derived
from tetraspark.line.tuned import NOT_TUNED, Tuned
from tetraspark.site.engines import RELEASE
from tetraspark.site.key_file import key_file_of
from tetraspark.site.load import LoadedSite

LOOPBACK = "127.0.0.1"
SIZES = (
    ("--max-total-tokens", "8192"),
    ("--max-running-requests", "8"),
    ("--mem-fraction-static", "0.5"),
)


def local_plan(loaded: LoadedSite, inventory: Inventory, found: Tuned = NOT_TUNED) -> Plan:
    """Compute the plan; `found` is what is stored for sizes that the site leaves to `tune`.

    Raises UsageError when this machine's engine is not the pinned one.
    """
    _require_engine(inventory)
    site = loaded.site
    port = site.api.port or inventory.ports[0]
    all_settings = [
        *_common(loaded),
        *_addresses(loaded, inventory, port),
        *_cpu_engine(loaded, inventory),
        *_plugin(loaded),
        *settings.told(),
        *collective_settings(loaded, found),
        *guards(loaded),
        *settings.extra(loaded),
    ]
    settings.refuse_conflicts(all_settings)
    ranks = tuple(
        RankCommand(
            rank=rank,
            node=node.name,
            argv=(
                inventory.python,
                "-m",
                "sglang.launch_server",
                *settings.argv_of(all_settings, rank),
            ),
            env=settings.env_of(all_settings, rank),
            port=port if rank == 0 else inventory.ports[rank],
        )
        for rank, node in enumerate(site.nodes)
    )
    return Plan(
        line=site.name,
        kind="local",
        site=str(loaded.path.resolve()),
        site_sha256=loaded.sha256,
        engine=RELEASE,
        model=str(loaded.resolve(site.model.path, "model.path")),
        served_name=site.model.served_name,
        host=site.api.host,
        port=port,
        transport=site.transport,
        ranks=ranks,
        settings=tuple(all_settings),
        warnings=() if found.warning is None else (found.warning,),
    )


def _require_engine(inventory: Inventory) -> None:
    if inventory.engine != RELEASE:
        raise UsageError(
            Problem(
                where=inventory.python,
                seen=f"sglang {inventory.engine or 'not installed'}",
                wanted=f"sglang {RELEASE}",
                fix="make environment",
            )
        )


def _common(loaded: LoadedSite) -> list[Setting]:
    model = str(loaded.resolve(loaded.site.model.path, "model.path"))
    found = [Setting("flag", "--model-path", model, loaded.origin("model.path"))]
    found += settings.from_keys(loaded)
    written = {setting.name for setting in found}
    # Left alone, the engine sizes its pools from all of the machine's memory, once for each rank.
    reason = "not in the site; ranks share this machine's memory"
    return found + [
        derived("flag", name, value, reason, None) for name, value in SIZES if name not in written
    ]


def _addresses(loaded: LoadedSite, inventory: Inventory, port: int) -> list[Setting]:
    """Ports: the API on rank 0, a health port on the others, the rendezvous last."""
    count = len(loaded.site.nodes)
    free = "free on this machine when planned"
    rendezvous = f"{LOOPBACK}:{loaded.site.engine.dist_port or inventory.ports[count]}"
    api_origin = loaded.origin("api.port")
    found = [derived("flag", "--nnodes", str(count), "number of [[nodes]]", None)]
    found.append(derived("flag", "--dist-init-addr", rendezvous, free, None))
    for rank in range(count):
        found.append(derived("flag", "--node-rank", str(rank), "order of [[nodes]]", rank))
        if rank == 0 and loaded.site.api.port:
            found.append(Setting("flag", "--port", str(port), api_origin, rank))
        else:
            chosen = port if rank == 0 else inventory.ports[rank]
            found.append(derived("flag", "--port", str(chosen), free, rank))
    return found


def _cpu_engine(loaded: LoadedSite, inventory: Inventory) -> list[Setting]:
    """What the engine needs to run several ranks on one CPU; reasons in docs/quickstart.md."""
    local = 'kind = "local"'
    cpus = inventory.cpus
    binding = "|".join(str(cpus[rank % len(cpus)]) for rank in range(len(loaded.site.nodes)))
    found = [
        derived("flag", "--device", "cpu", local, None),
        derived("flag", "--attention-backend", "torch_native", local, None),
        derived("flag", "--disable-custom-all-reduce", None, local, None),
        derived("flag", "--sleep-on-idle", None, "idle ranks leave the cores alone", None),
        derived("env", "SGLANG_USE_CPU_ENGINE", "1", local, None),
        derived("env", "SGLANG_CPU_OMP_THREADS_BIND", binding, "cores of this machine", None),
        derived("env", "OMP_NUM_THREADS", "1", "ranks share cores", None),
        derived("env", "TORCHDYNAMO_DISABLE", "1", "no compiler at the first request", None),
        derived("env", "HF_HUB_OFFLINE", "1", local, None),
        derived("env", "GLOO_SOCKET_IFNAME", "lo", "ranks meet on loopback", None),
    ]
    if inventory.standins:
        path = ":".join(str(path_of(name)) for name in inventory.standins)
        reason = f"not installed here: {', '.join(inventory.standins)}"
        found.append(derived("env", "PYTHONPATH", path, reason, None))
    return found


def _plugin(loaded: LoadedSite) -> list[Setting]:
    """The plugin, and the engine's own warm-up off: the launcher warms up through the API."""
    found = [
        derived("flag", "--skip-server-warmup", None, "the launcher warms up itself", None),
        derived("env", "SGLANG_PLUGINS", "tetraspark", "receipts", None),
        derived("env", "SPT_NOENV", "1", "keeps the label of the run's processes", None),
    ]
    key_file = key_file_of(loaded)
    if key_file is not None:
        origin = loaded.origin("api.key_file")
        found.append(Setting("env", KEY_FILE, str(key_file), origin, 0))
    return found
