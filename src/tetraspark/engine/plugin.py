"""The engine's plugin entry point: check for drift, apply the hooks, prove that they took.

SGLang runs entry points in every process and swallows ordinary exceptions, so a refusal is
`SystemExit`; and it applies hooks after the entry point, so the plugin applies them itself and
then looks whether each one is there.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from tetraspark.engine.drift import inspect_all
from tetraspark.engine.hooks import CALLED, HOOKS, Hook, Role
from tetraspark.engine.receipts import refuse
from tetraspark.engine.tree import TreeError, open_tree

PREFIX = "TETRASPARK_"
SCHEDULER_MODULE = "sglang.srt.managers.scheduler"


def register() -> None:
    """Hook this process of the engine; the entry point named in pyproject.toml.

    Idle in an engine whose environment holds nothing of a plan: any variable of ours, such as
    the one that names the API key's file, must have its effect or stop the start. Raises
    SystemExit when the engine is missing, has drifted, or refuses a hook.
    """
    if not any(name.startswith(PREFIX) for name in os.environ):
        print("tetraspark: no plan in the environment, plugin idle", file=sys.stderr)
        return
    hooks = tuple(hook for hook in HOOKS if hook.role == process_role())
    _refuse_drift(hooks)
    apply(hooks)


def process_role() -> Role:
    """Tell which engine process this is, without importing anything of the engine."""
    if multiprocessing.parent_process() is None:
        return "server"
    return "scheduler" if SCHEDULER_MODULE in sys.modules else "detokenizer"


def _refuse_drift(hooks: tuple[Hook, ...]) -> None:
    try:
        findings = inspect_all(open_tree(None), (*(hook.target for hook in hooks), *CALLED))
    except TreeError as error:
        refuse([f"sglang: {error}"])
    drifted = [str(finding) for finding in findings if finding.verdict != "found"]
    if drifted:
        refuse(drifted)


def apply(hooks: tuple[Hook, ...]) -> None:
    """Register hooks and apply them now; raises SystemExit when the engine left one out."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in hooks:
        function: Callable[..., Any] = resolve_name(hook.function)
        HookRegistry.register(hook.target.path, function, HookType[hook.type])
    HookRegistry.apply_hooks()
    refused = [hook.target.path for hook in hooks if hook.target.path not in HookRegistry._patched]
    if refused:
        refuse([f"{path}: the engine did not apply the hook" for path in refused])
