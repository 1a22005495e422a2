"""Sections of a site file that say what is served: model, engine, API, deadlines."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tetraspark.site.section import Host, PathText, Section, refusal

DIST_PORT = 20000
"""Where the ranks of a fleet meet on the head, when the site says nothing."""


class Canary(Section):
    """The completion that proves a started line answers."""

    prompt: str = Field(description="user message sent after the ranks are up")
    expect: str | None = Field(
        default=None, description="text the answer must contain; any answer passes without it"
    )
    max_tokens: int = Field(
        default=16, ge=1, le=4096, description="tokens asked for; a canary is short"
    )

    def accepts(self, text: str) -> bool:
        """Tell whether an answer holds what is expected; without `expect`, any does."""
        return self.expect is None or self.expect in text


class Model(Section):
    """The checkpoint and how it is presented."""

    path: PathText = Field(
        description="folder of the checkpoint, relative to the site file; `~` is expanded on the "
        "node that uses it"
    )
    served_name: str = Field(description="the `model` name that clients send")
    canary: Canary = Field(description="the completion that proves the line answers")


class Engine(Section):
    """How SGLang runs; an absent key leaves the engine's own default."""

    tp: int = Field(ge=1, le=64, description="tensor-parallel ranks; one GPU a node")
    ep: int = Field(default=1, ge=1, le=64, description="expert-parallel ranks; divides `tp`")
    context_length: int | None = Field(
        default=None, ge=16, le=1_048_576, description="tokens; the model has 1,048,576 positions"
    )
    chunked_prefill_size: int | None = Field(
        default=None,
        ge=16,
        le=131_072,
        description="tokens a prefill step; buffers grow with it",
    )
    max_running_requests: int | None = Field(
        default=None, ge=1, le=4096, description="requests decoded together"
    )
    kv_tokens: int | None = Field(
        default=None, ge=16, le=1_000_000_000, description="pins the KV pool (--max-total-tokens)"
    )
    mem_fraction: float | None = Field(
        default=None, gt=0, lt=1, description="static share of memory; 1 leaves none for prefill"
    )
    head_mem_fraction: float | None = Field(
        default=None, gt=0, lt=1, description="the same on rank 0, which also runs the HTTP server"
    )
    watchdog_seconds: int | None = Field(
        default=None, ge=1, le=86_400, description="the engine ends itself after a step this long"
    )
    dist_port: int | None = Field(
        default=None, ge=1024, le=65_535, description="rendezvous port on the head; unprivileged"
    )
    extra_args: tuple[str, ...] = Field(
        default=(), description="further engine arguments, one word an element"
    )


class Api(Section):
    """Where the OpenAI-compatible server listens, and who may use it."""

    host: Host = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(ge=0, le=65_535, description="TCP port; 0 chooses a free one")
    key_file: PathText | None = Field(
        default=None, description="file of mode 0600 with the API key, relative to the site file"
    )
    allow_open: bool = Field(
        default=False, description="whoever reaches `host` may use the server, without a key"
    )


class Deadlines(Section):
    """Seconds each phase of a start or stop may take; defaults are those of a local line."""

    import_seconds: int = Field(default=300, ge=1, le=86_400, description="until a rank speaks")
    load_seconds: int = Field(default=300, ge=1, le=86_400, description="until weights are loaded")
    warmup_seconds: int = Field(default=300, ge=1, le=86_400, description="until health answers")
    canary_seconds: int = Field(default=60, ge=1, le=86_400, description="until the canary answers")
    stop_seconds: int = Field(default=20, ge=1, le=86_400, description="from TERM to KILL")


FLEET_DEADLINES = {
    "import_seconds": 600,
    "load_seconds": 2400,
    "warmup_seconds": 1800,
    "canary_seconds": 120,
    "stop_seconds": 60,
}
"""Defaults for kind "fleet": hundreds of GB to load, then kernels compiled at first use."""


def _algorithm(text: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", text):
        upper = re.sub(r"[^A-Z0-9_]", "", text.upper()).lstrip("0123456789_") or "DSPARK"
        wanted = "the engine's name for it, in upper case"
        raise refusal(f"algorithm = {text!r}", wanted, f'algorithm = "{upper}"')
    return text


class Speculative(Section):
    """Speculative decoding."""

    algorithm: Annotated[str, AfterValidator(_algorithm)] = Field(
        description="the engine's name for it, such as DSPARK"
    )
    block_size: int | None = Field(
        default=None, ge=1, le=64, description="draft tokens a step (DSPARK)"
    )
    sps_table: PathText | None = Field(default=None, description="profiled step costs (DSPARK)")
    sts_table: PathText | None = Field(default=None, description="confidence table (DSPARK)")
    sampled_in_graph: bool | None = Field(
        default=None, description="keep sampled requests in the CUDA graph (DSPARK)"
    )


class Engram(Section):
    """The Engram tables and their shards on local NVMe."""

    offload: Literal["nvme", "ram"] = Field(
        default="nvme", description="where the tables are; `ram` pins 189 GiB"
    )
    dir: PathText | None = Field(default=None, description="packed shards, on every node")
    worker_dir: PathText | None = Field(default=None, description="the same on workers, if other")
    cache_gib: float | None = Field(
        default=None,
        ge=0,
        le=128,
        description="row cache a node, GiB; GPU memory here; 0 off",
    )
    cache_ways: int | None = Field(default=None, ge=1, le=64, description="ways of that cache")
    io_threads: int | None = Field(
        default=None, ge=1, le=1024, description="reads in flight; NVMe needs depth"
    )
    resident_scales: bool | None = Field(default=None, description="keep row scales in memory")
    stats_seconds: int | None = Field(
        default=None, ge=0, le=86_400, description="seconds between statistics lines; 0 none"
    )
