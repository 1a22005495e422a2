"""Environment names a site may set, and those that tetraspark computes."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from tetraspark.site.credentials import secret_finding
from tetraspark.site.engine_variables import variable_finding
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.secret import names_secret

OWNED_ENV: tuple[str, ...] = (
    "B12X_ROCE_GID_INDEX",
    "B12X_ROCE_HCA",
    "GLOO_SOCKET_IFNAME",
    "HOST_IP",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_SOCKET_IFNAME",
    "NODE_RANK",
    "PYTHONPATH",
    "RANK",
    "SGLANG_PLUGINS",
    "SPT_NOENV",
    "TETRASPARK_*",
    "WORLD_SIZE",
)
"""Names (with `*` as in a shell) that tetraspark sets for each rank; `[env]` must not."""

TYPED_ENV: Mapping[str, str] = {
    "DSV41_CACHE_GIB": "engram.cache_gib",
    "DSV41_CACHE_WAYS": "engram.cache_ways",
    "DSV41_IO_THREADS": "engram.io_threads",
    "DSV41_LOOP_ABORT": "guards.loop_abort",
    "DSV41_LOOP_LINE_REPEATS": "guards.loop_line_repeats",
    "DSV41_LOOP_NGRAM": "guards.loop_ngram",
    "DSV41_LOOP_REPEATS": "guards.loop_repeats",
    "DSV41_MAX_NEW_TOKENS": "guards.max_new_tokens",
    "DSV41_PREFILL_EMPTY_CACHE_TOKENS": "guards.prefill_empty_cache_tokens",
    "DSV41_RESIDENT_SCALES": "engram.resident_scales",
    "DSV41_STATS_SECONDS": "engram.stats_seconds",
    "NCCL_BUFFSIZE": "fabric.nccl.buffer_bytes",
    "NCCL_DEBUG": "fabric.nccl.debug",
    "NCCL_DEBUG_SUBSYS": "fabric.nccl.debug_subsystems",
    "NCCL_IB_TC": "fabric.traffic_class",
    "NCCL_LL128_BUFFSIZE": "fabric.nccl.ll128_buffer_bytes",
    "NCCL_MAX_NCHANNELS": "fabric.nccl.channels_max",
    "NCCL_MIN_NCHANNELS": "fabric.nccl.channels_min",
    "NCCL_PROTO": "fabric.nccl.protocols",
    "NCCL_SWITCHLESS_RING_ONLY": "fabric.topology",
    "OFFLOAD_MODE": "engram.offload",
}
"""Names that a typed key of a fleet site sets."""

LOADER = ("LD_PRELOAD", "PATH")
"""Names that a container's image sets for its own programs."""

_QUOTES = "\"'"


def owned(name: str) -> bool:
    """Say whether tetraspark computes this variable itself."""
    return any(fnmatchcase(name, pattern) for pattern in OWNED_ENV)


def env_findings(
    path: KeyPath, env: Mapping[str, object], kind: object, engine: str | None
) -> list[Finding]:
    """Check the names of `[env]`."""
    found = []
    for name in env:
        finding = _name_finding((*path, name), name)
        finding = finding or variable_finding((*path, name), name, engine, kind)
        if finding is None and kind == "fleet":
            finding = _fleet_finding((*path, name), name)
        found += [finding] if finding else []
    return found


def env_warnings(path: KeyPath, env: Mapping[str, object]) -> list[Finding]:
    """Find values that look like a shell file's spelling, taken over with its quotes."""
    found = []
    for name, value in env.items():
        if not isinstance(value, str):
            continue
        quoted = len(value) > 1 and value[0] in _QUOTES and value[-1] == value[0]
        if quoted or " #" in value:
            what = "begins and ends with a quote" if quoted else "contains ` #`"
            wanted = "the value alone: nothing strips quotes or comments here"
            fix = "remove the inner quotes" if quoted else "move the comment out of the string"
            found.append(Finding((*path, name), f"the value of `{name}` {what}", wanted, fix))
    return found


def _name_finding(path: KeyPath, name: str) -> Finding | None:
    if not name.isidentifier() or not name.isascii():
        wanted = "a name of letters, digits and `_`"
        return Finding(path, f"environment name {name!r}", wanted, "correct the name")
    if names_secret(name):
        return secret_finding(path, f"`{name}` looks like a secret")
    if owned(name):
        wanted = "only names that tetraspark does not compute for each rank"
        return Finding(path, f"`{name}` is tetraspark's own", wanted, "remove it")
    return None


def _fleet_finding(path: KeyPath, name: str) -> Finding | None:
    if name in LOADER:
        wanted = "the image's own: it names the programs and libraries that the image was tested on"
        return Finding(path, f"`{name}` in a fleet", wanted, "remove it; set it in a `dockerfile`")
    if name in TYPED_ENV:
        key = TYPED_ENV[name]
        return Finding(path, f"`{name}`", f"that setting in `{key}`", f"set `{key}` instead")
    return None
