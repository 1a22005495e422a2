"""The engine's plugin entry point: check for drift, apply the hooks, prove that they took.

SGLang runs entry points in every process and swallows ordinary exceptions, so a refusal is
`SystemExit`; and it applies hooks after the entry point, so the plugin applies them itself and
then looks whether each one is there.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any, NoReturn

from tetraspark.engine import receipts
from tetraspark.engine.drift import inspect_all, package_root
from tetraspark.engine.hooks import CALLED, HOOKS, Hook, Role

RUN_DIR = "TETRASPARK_RUN_DIR"
SCHEDULER_MODULE = "sglang.srt.managers.scheduler"

_first_all_reduce = True


def register() -> None:
    """Hook this process of the engine; the entry point named in pyproject.toml.

    Does nothing in an engine that `tetraspark serve` did not start. Raises SystemExit when the
    engine is missing, has drifted, or refuses a hook.
    """
    if RUN_DIR not in os.environ:
        print("tetraspark: engine not started by `tetraspark serve`, plugin idle", file=sys.stderr)
        return
    hooks = tuple(hook for hook in HOOKS if hook.role == process_role())
    _refuse_drift(hooks)
    _apply(hooks)


def process_role() -> Role:
    """Tell which engine process this is, without importing anything of the engine."""
    if multiprocessing.parent_process() is None:
        return "server"
    return "scheduler" if SCHEDULER_MODULE in sys.modules else "detokenizer"


def _refuse_drift(hooks: tuple[Hook, ...]) -> None:
    root = package_root("sglang")
    if root is None:
        _refuse(["package sglang is not installed"])
    findings = inspect_all(root, (*(hook.target for hook in hooks), *CALLED))
    drifted = [str(finding) for finding in findings if finding.verdict != "found"]
    if drifted:
        _refuse(drifted)


def _apply(hooks: tuple[Hook, ...]) -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in hooks:
        function: Callable[..., Any] = resolve_name(hook.function)
        HookRegistry.register(hook.target.path, function, HookType[hook.type])
    HookRegistry.apply_hooks()
    refused = [hook.target.path for hook in hooks if hook.target.path not in HookRegistry._patched]
    if refused:
        _refuse([f"{path}: the engine did not apply the hook" for path in refused])


def _refuse(reasons: list[str]) -> NoReturn:
    receipts.emit("refused", engine=_engine_version(), reasons=reasons)
    raise SystemExit("tetraspark: refusing to boot: " + "; ".join(reasons))


def _engine_version() -> str:
    try:
        return version("sglang")
    except ModuleNotFoundError:
        return "not installed"


def after_scheduler_init(result: None, scheduler: Any, *args: object, **kwargs: object) -> None:
    """AFTER `Scheduler.__init__`: print the `engine` receipt; the ranks are the engine's own."""
    from sglang.srt.distributed.parallel_state import get_tp_group

    group = get_tp_group()
    receipts.emit(
        "engine",
        rank=group.rank_in_group,
        world=group.world_size,
        engine=_engine_version(),
        plugin=version("tetraspark"),
        hooks=[hook.target.path for hook in HOOKS if hook.role == "scheduler"],
    )


def around_all_reduce(original: Callable[[Any, Any], Any], group: Any, tensor: Any) -> Any:
    """AROUND `GroupCoordinator.all_reduce`: name the route of the first tensor-parallel one.

    `tensor` is (rows, hidden) in the model's dtype. The engine's own transport does the work.
    """
    global _first_all_reduce
    result = original(group, tensor)
    if _first_all_reduce and group.unique_name.startswith("tp:"):
        _first_all_reduce = False
        receipts.emit(
            "tp_all_reduce",
            rank=group.rank_in_group,
            world=group.world_size,
            route="engine",
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=list(tensor.shape),
            bytes=tensor.numel() * tensor.element_size(),
        )
    return result
