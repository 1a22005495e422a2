"""Every place where the plugin touches the engine, with the source hashes it was written for."""

from dataclasses import dataclass
from typing import Literal

from tetraspark.engine.drift import Target

PLUGIN = "src/tetraspark/engine/plugin.py"
API_KEY = "src/tetraspark/engine/api_key.py"

Role = Literal["server", "scheduler", "detokenizer"]


@dataclass(frozen=True)
class Hook:
    """A target, the name of our function for it, the engine's hook type, and who needs it."""

    target: Target
    function: str
    type: Literal["BEFORE", "AFTER", "AROUND", "REPLACE"]
    role: Role


HOOKS = (
    Hook(
        Target(
            "sglang.srt.distributed.parallel_state.GroupCoordinator.all_reduce",
            ("8d4026274e64a92c76728250e56a9d7e9d734c7bd9fe82d69813bc0a20deee81",),
            PLUGIN,
        ),
        "tetraspark.engine.plugin:around_all_reduce",
        "AROUND",
        "scheduler",
    ),
    Hook(
        Target(
            "sglang.srt.managers.scheduler.Scheduler.__init__",
            ("93ad4787d25f76ee4af16e5f7cb35d56fe8b6d9fdab9b7974c4f03a5f20c78eb",),
            PLUGIN,
        ),
        "tetraspark.engine.plugin:after_scheduler_init",
        "AFTER",
        "scheduler",
    ),
    Hook(
        Target(
            "sglang.srt.entrypoints.http_server._setup_and_run_http_server",
            ("7b68d6a8a80953ba57fd92707fc63446d5fab2575c80177e8227f46905e120a8",),
            API_KEY,
        ),
        "tetraspark.engine.api_key:before_http_server",
        "BEFORE",
        "server",
    ),
    Hook(
        Target(
            "sglang.srt.entrypoints.http_server._freeze_gc_after_server_warmup",
            ("9f604baf62c7da02a2b5ee8b258b2568f6126c33202a658480adb11d96e8a7cd",),
            API_KEY,
        ),
        "tetraspark.engine.api_key:freeze_gc",
        "REPLACE",
        "server",
    ),
)

# Called, not hooked: a change here breaks the plugin just as surely.
CALLED = (
    Target(
        "sglang.srt.utils.auth.add_api_key_middleware",
        ("33b82c7ebe4c98897edac2f899e834fa7883058a902982f4226ebfb3926ce24c",),
        API_KEY,
    ),
    Target(
        "sglang.srt.plugins.hook_registry.HookRegistry.register",
        ("269af21f6a3ef44b87415a643893208bd5d25d62ea279679888ca4c16671838e",),
        PLUGIN,
    ),
    Target(
        "sglang.srt.plugins.hook_registry.HookRegistry.apply_hooks",
        ("e5c55fda696ce75fc8cf2d0495a4d37a593158bdd5ebb44229ea5b77877c94a9",),
        PLUGIN,
    ),
)

TARGETS = (*(hook.target for hook in HOOKS), *CALLED)
