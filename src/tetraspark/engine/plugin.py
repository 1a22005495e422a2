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

from tetraspark.engine import receipts
from tetraspark.engine.drift import Target, inspect_all
from tetraspark.engine.guard_env import guard_settings
from tetraspark.engine.hook import Hook, Role
from tetraspark.engine.hooks import hooks_of, targets_of
from tetraspark.engine.receipts import refuse
from tetraspark.engine.split_env import split_settings
from tetraspark.engine.stacks import write_stacks_on_signal
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
    role = process_role()
    cuda = role == "scheduler" and on_cuda()
    _refuse_split(role, cuda=cuda)
    _refuse_guards()
    _refuse_drift(targets_of(role, cuda=cuda))
    hooks = hooks_of(role, cuda=cuda)
    apply_hooks(hooks)
    write_stacks_on_signal()
    if role == "detokenizer":
        # The other two print receipts of their own once they are up.
        receipts.emit("detokenizer", hooks=[hook.target.path for hook in hooks])


def process_role() -> Role:
    """Tell which engine process this is, without importing anything of the engine."""
    if multiprocessing.parent_process() is None:
        return "server"
    return "scheduler" if SCHEDULER_MODULE in sys.modules else "detokenizer"


def on_cuda() -> bool:
    """Tell whether this scheduler's engine runs on CUDA, as the engine itself decides."""
    from sglang.srt.utils import is_cpu, is_cuda

    return bool(is_cuda() and not is_cpu())


def _refuse_split(role: Role, *, cuda: bool) -> None:
    """End a process that cannot do the prefill split its plan asks for."""
    try:
        settings = split_settings(os.environ)
    except ValueError as error:
        refuse([str(error)])
    if settings is not None and role == "scheduler" and not cuda:
        refuse(["a prefill split is planned, and this engine does not run on CUDA"])


def _refuse_guards() -> None:
    """End a process whose limits on requests are none."""
    try:
        guard_settings(os.environ)
    except ValueError as error:
        refuse([str(error)])


def _refuse_drift(targets: tuple[Target, ...]) -> None:
    try:
        findings = inspect_all(open_tree(None), targets)
    except TreeError as error:
        refuse([f"sglang: {error}"])
    drifted = [str(finding) for finding in findings if finding.verdict != "found"]
    if drifted:
        refuse(drifted)


def apply_hooks(hooks: tuple[Hook, ...]) -> None:
    """Apply hooks through the engine's registry; raises SystemExit when one did not take."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in hooks:
        function: Callable[..., Any] = resolve_name(hook.function)
        HookRegistry.register(hook.target.path, function, HookType[hook.type])
    HookRegistry.apply_hooks()
    refused = [hook.target.path for hook in hooks if hook.target.path not in HookRegistry._patched]
    if refused:
        refuse([f"{path}: the engine did not apply the hook" for path in refused])
