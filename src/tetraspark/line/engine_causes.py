"""What the error texts of an engine and of what it stands on mean."""

import re
from collections.abc import Callable, Sequence

from tetraspark.errors import Problem, RunError
from tetraspark.fabric.nccl_log import nccl_causes
from tetraspark.fleet.cause import Cause, cause, first_cause

_RANK = re.compile(r"rank (\d+) \(")

CAUSES: tuple[Cause, ...] = (
    cause(
        "no cargo",
        r"No such file or directory: '?cargo|cargo: (?:command )?not found|cargo --version",
        "the engine of the dsv4.1 branch looks for a Rust compiler when it starts",
        'set SGLANG_RUST_BUILD_MODE = "never" in [env]',
    ),
    cause(
        "speed table with Engram",
        r"engram target-verify expects one equal block per request",
        "verify steps of unequal length, which a step-cost table plans, do not go with Engram",
        "remove speculative.sps_table",
    ),
    cause(
        "page cache in the way",
        r"exceeds device memory budget",
        "on a machine whose GPU shares the memory, only MemFree counts for the GPU's allocator, "
        "and the files that were just read fill it",
        "on {node}: grep -E 'Mem(Free|Available)' /proc/meminfo; "
        "sync && echo 1 | sudo tee /proc/sys/vm/drop_caches",
    ),
    cause(
        "GPU memory in pieces",
        r"NV_ERR_NO_MEMORY",
        "the driver found no block large enough, though memory is free",
        "on {node}: cat /proc/buddyinfo (the last columns are the large blocks); "
        "echo 1 | sudo tee /proc/sys/vm/compact_memory; else reboot the node",
    ),
    cause(
        "out of GPU memory",
        r"CUDA out of memory|torch\.OutOfMemoryError|CUDA error: out of memory",
        "weights, KV pool and graphs together are larger than what the node has left",
        "lower engine.kv_tokens or engine.mem_fraction; on {node}: ps -eo pid,rss,comm --sort -rss",
    ),
    cause(
        "a rank is busy elsewhere",
        r"No available shared memory broadcast block found",
        "one rank did not take part for a minute: it compiles a kernel, or hangs",
        "tetraspark status names the rank; let it end, and warm up every batch size before serving",
    ),
    cause(
        "no token for long",
        r"Health check failed\. Server couldn't get a response from detokenizer",
        "nothing came out of the engine for that long: a long prefill, or a wedged rank",
        "tetraspark status; while its tokens grow, wait, or raise SGLANG_HEALTH_CHECK_TIMEOUT in "
        "[env]",
    ),
)
"""Texts of SGLang, torch and the driver; those of NCCL are in fabric.nccl_log."""


def cause_of(text: str, topology: str | None) -> Cause | None:
    """Return what all that a rank said shows, or None; `topology` is that of the site's fabric."""
    return first_cause((*nccl_causes(topology), *CAUSES), text)


def explained(problem: Problem, node: str, rank: int, text: str, topology: str | None) -> Problem:
    """Return the headline of a failed start, with the cause that the rank's own words show."""
    found = cause_of(text, topology)
    return problem if found is None else found.explain(problem, node, rank)


def explained_failure(
    error: RunError, nodes: Sequence[str], log_end: Callable[[int], str], topology: str | None
) -> RunError:
    """Return the failure of a start with its causes told; `nodes` are in rank order.

    `log_end` gives the last words of a rank. A problem that names no rank stays as it is.
    """
    problems = []
    for problem in error.problems:
        named = _RANK.match(problem.where)
        rank = int(named[1]) if named else -1
        if 0 <= rank < len(nodes):
            problem = explained(problem, nodes[rank], rank, log_end(rank), topology)
        problems.append(problem)
    return RunError(*problems)
