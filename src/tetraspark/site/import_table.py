"""Variables of the bash launchers: the site key each one becomes, or why it becomes none."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tetraspark.site.keypath import KeyPath

Converter = Callable[[str], Any]


class NotCarriedError(ValueError):
    """A value that no key takes; the text says why."""


def split_list(text: str) -> list[str]:
    """Split a list of the launchers: blanks or commas between the items."""
    return [item for item in re.split(r"[\s,]+", text) if item]


def integer(text: str) -> int:
    """Return a decimal number."""
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        raise NotCarriedError(f"{text!r} is not a whole number")
    return int(text)


def limit(text: str) -> int:
    """Return a limit; the launchers' 0 means off, which here is an absent key."""
    number = integer(text)
    if number == 0:
        raise NotCarriedError("0 switches it off, which an absent key does here")
    return number


def number(text: str) -> float:
    """Return a decimal fraction."""
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        raise NotCarriedError(f"{text!r} is not a number")
    return float(text)


def switch(text: str) -> bool:
    """Return a 0/1 switch."""
    if text not in ("0", "1"):
        raise NotCarriedError(f"{text!r} is neither 0 nor 1")
    return text == "1"


def folded(text: str) -> bool:
    """Return SGLANG_DSPARK_FOLDED_SAMPLING: 0 is OFF, 2 is FORCE."""
    if text == "1":
        raise NotCarriedError("1 lets free memory decide, as an absent key does")
    if text not in ("0", "2"):
        raise NotCarriedError(f"{text!r} is none of 0, 1 and 2")
    return text == "2"


def words(text: str) -> tuple[str, ...]:
    """Return a list of the launchers as a tuple."""
    return tuple(split_list(text))


def base_image(text: str) -> str:
    """Return an image pinned by digest."""
    if "@sha256:" not in text:
        why = "without a digest it names a different image every week; pin it as `image.base`"
        raise NotCarriedError(why)
    return text


SIMPLE: Mapping[str, tuple[KeyPath, Converter]] = {
    "BASE_IMAGE": (("image", "base"), base_image),
    "BUILD_DOCKERFILE": (("image", "dockerfile"), str),
    "CHUNKED_PREFILL_SIZE": (("engine", "chunked_prefill_size"), integer),
    "CONTEXT_LENGTH": (("engine", "context_length"), integer),
    "DIST_PORT": (("engine", "dist_port"), integer),
    "DSPARK_BLOCK_SIZE": (("speculative", "block_size"), integer),
    "DSPARK_SPS_TABLE": (("speculative", "sps_table"), str),
    "DSPARK_STS_TABLE": (("speculative", "sts_table"), str),
    "DSV41_CACHE_GIB": (("engram", "cache_gib"), number),
    "DSV41_CACHE_WAYS": (("engram", "cache_ways"), integer),
    "DSV41_IO_THREADS": (("engram", "io_threads"), integer),
    "DSV41_LOOP_ABORT": (("guards", "loop_abort"), switch),
    "DSV41_LOOP_LINE_REPEATS": (("guards", "loop_line_repeats"), limit),
    "DSV41_LOOP_NGRAM": (("guards", "loop_ngram"), limit),
    "DSV41_LOOP_REPEATS": (("guards", "loop_repeats"), limit),
    "DSV41_MAX_NEW_TOKENS": (("guards", "max_new_tokens"), limit),
    "DSV41_PREFILL_EMPTY_CACHE_TOKENS": (("guards", "prefill_empty_cache_tokens"), integer),
    "DSV41_RESIDENT_SCALES": (("engram", "resident_scales"), switch),
    "DSV41_STATS_SECONDS": (("engram", "stats_seconds"), integer),
    "ENGRAM_DIR": (("engram", "dir"), str),
    "EP_SIZE": (("engine", "ep"), integer),
    "HEAD_MEM_FRACTION_STATIC": (("engine", "head_mem_fraction"), number),
    "MAX_RUNNING_REQUESTS": (("engine", "max_running_requests"), integer),
    "MAX_TOTAL_TOKENS": (("engine", "kv_tokens"), integer),
    "MEM_FRACTION_STATIC": (("engine", "mem_fraction"), number),
    "MODEL_DIR": (("model", "path"), str),
    "NCCL_BUFFSIZE": (("fabric", "nccl", "buffer_bytes"), integer),
    "NCCL_DEBUG": (("fabric", "nccl", "debug"), str.upper),
    "NCCL_DEBUG_SUBSYS": (("fabric", "nccl", "debug_subsystems"), words),
    "NCCL_IB_TC": (("fabric", "traffic_class"), integer),
    "NCCL_LL128_BUFFSIZE": (("fabric", "nccl", "ll128_buffer_bytes"), integer),
    "NCCL_PROTO": (("fabric", "nccl", "protocols"), str),
    "OFFLOAD_MODE": (("engram", "offload"), str),
    "PIP_INDEX": (("image", "build_args", "PIP_INDEX"), str),
    "PORT": (("api", "port"), integer),
    "SERVED_MODEL_NAME": (("model", "served_name"), str),
    "SGLANG_DSPARK_FOLDED_SAMPLING": (("speculative", "sampled_in_graph"), folded),
    "SPEC_ALGO": (("speculative", "algorithm"), str.upper),
    "SSH_IDENTITY": (("ssh", "identity_file"), str),
    "TP_SIZE": (("engine", "tp"), integer),
    "WORKER_ENGRAM_DIR": (("engram", "worker_dir"), str),
}
"""Variable -> site key and converter, for those that need no other variable."""

RING: Mapping[str, tuple[KeyPath, Converter]] = {
    "NCCL_HOST_DIR": (("fabric", "ring", "nccl_library_dir"), str),
    "NCCL_IB_SUBNET_PREFIX_LEN": (("fabric", "ring", "subnet_prefix"), integer),
    "NCCL_MAX_NCHANNELS": (("fabric", "ring", "channels_max"), integer),
    "NCCL_MIN_NCHANNELS": (("fabric", "ring", "channels_min"), integer),
    "NCCL_PIP_SO": (("fabric", "ring", "nccl_target"), str),
    "NCCL_WORKER_DIR": (("fabric", "ring", "worker_nccl_library_dir"), str),
}
"""The same where NCCL_SWITCHLESS_RING_ONLY is 1."""

SWITCHED: Mapping[str, tuple[KeyPath, Converter]] = {
    "NCCL_MAX_NCHANNELS": (("fabric", "nccl", "channels_max"), integer),
    "NCCL_MIN_NCHANNELS": (("fabric", "nccl", "channels_min"), integer),
}
"""The same on a switch."""

FLAGS: Mapping[str, Converter] = {
    "api.host": str,
    "engine.chunked_prefill_size": integer,
    "engine.context_length": integer,
    "engine.ep": integer,
    "engine.kv_tokens": integer,
    "engine.max_running_requests": integer,
    "engine.mem_fraction": number,
    "engine.tp": integer,
    "engine.watchdog_seconds": integer,
    "model.served_name": str,
    "speculative.algorithm": str,
    "speculative.block_size": integer,
    "speculative.sps_table": str,
    "speculative.sts_table": str,
}
"""Site keys that a flag of EXTRA_SGLANG_ARGS can be moved to."""

LAUNCHER_ONLY = frozenset(
    {
        "BASE_IMAGE",
        "BUILD_ARGS",
        "BUILD_DOCKERFILE",
        "DIST_PORT",
        "ENGRAM_DIR",
        "HEAD_IP",
        "HEAD_MEM_FRACTION_STATIC",
        "IB_HCA",
        "IMAGE",
        "MODEL_DIR",
        "NFS_CLIENTS",
        "NFS_EXPORT_NAME",
        "NFS_SERVER_IPS",
        "NFS_SHARE",
        "NFS_VOLUME",
        "PIP_INDEX",
        "PORT",
        "SSH_IDENTITY",
        "WORKER_ENGRAM_DIR",
        "WORKER_HOSTS",
        "WORKER_IPS",
        "WORKER_USER",
    }
)
"""Variables the launcher itself reads; setting them inside the container changes nothing."""

_GID = "a GID index moves: it is looked up for each device and node at every launch"
_INTERFACE = "the interface is looked up on each node from its address: names differ by node"
_OVERLAY = "torch loads NCCL by its own path in the image; only a ring mounts another one over it"
_OWN = "tetraspark names its own containers, folders and logs"
_PROOF = "a start is always proven: receipts, health, canary"
_DOWNLOAD = "tetraspark serves a checkpoint that is there; it downloads none"
_DEADLINES = "set [deadlines] instead: it has one limit for each phase"
_MOUNT = "tetraspark chooses where things are mounted in the container"

NOT_CARRIED: Mapping[str, str] = {
    "B12X_ROCE_GID_INDEX": _GID,
    "BUILD_TIMEOUT": _DEADLINES,
    "COMMON_MODEL": "a link the bash launcher makes; `model.path` is mounted itself",
    "DOCTOR_STRICT": _PROOF,
    "DSV41_PACKED_DIR": _MOUNT,
    "ENV_EXAMPLE": _OWN,
    "ENV_FILE": _OWN,
    "EXPECTED_SHARDS": _DOWNLOAD,
    "FABRIC_IFACE": _INTERFACE,
    "FORCE": "a running line is replaced with `--replace`",
    "GLOO_SOCKET_IFNAME": _INTERFACE,
    "HEAD_CTN": _OWN,
    "HF_REPO": _DOWNLOAD,
    "HF_REVISION": _DOWNLOAD,
    "HOST_IP": "each node's `host` is used",
    "LOG_DIR": _OWN,
    "NCCL_CONTAINER_DIR": _MOUNT,
    "NCCL_IB_GID_INDEX": _GID,
    "NCCL_SOCKET_IFNAME": _INTERFACE,
    "PULL_TIMEOUT": _DEADLINES,
    "READY_TIMEOUT": _DEADLINES,
    "REMOTE_TIMEOUT": _DEADLINES,
    "ROOT": _OWN,
    "SERVE_LOG": _OWN,
    "SHM_SIZE": _MOUNT,
    "SKIP_PREPARE": _PROOF,
    "SKIP_SMOKE": _PROOF,
    "SKIP_VERIFY": _PROOF,
    "SMOKE_QUICK": _PROOF,
    "STATE_DIR": _OWN,
    "WARMUP": _PROOF,
    "WORKER_CTN": _OWN,
    "WORKER_DIR": _OWN,
}
"""Variables the launchers need and tetraspark does not, with the reason."""

NOT_ON_A_SWITCH: Mapping[str, str] = {
    "NCCL_HOST_DIR": _OVERLAY,
    "NCCL_OVERLAY_PIP": _OVERLAY,
    "NCCL_PIP_SO": _OVERLAY,
    "NCCL_WORKER_DIR": _OVERLAY,
}

SET_BY_A_RING: Mapping[str, str] = {
    "NCCL_ALGO": 'topology = "ring" sets it',
    "NCCL_OVERLAY_PIP": "a ring with `nccl_library_dir` always mounts it over the image's own",
}
