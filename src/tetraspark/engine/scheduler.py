"""Hooks inside a scheduler process: the communicator, its routes, and the result boundaries."""

import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tetraspark.collectives.failure import BuildError, CollectiveError, RefusedError
from tetraspark.engine import guard_scheduler, receipts, watchdog
from tetraspark.engine.communicator import Communicator, open_communicator
from tetraspark.engine.hooks import hooks_of
from tetraspark.engine.label import RUN_DIR
from tetraspark.engine.plugin import on_cuda
from tetraspark.engine.progress import progress_path, write_in_background

# The kernel closes a process's connections before it says that the process is gone.
CAUSE_SECONDS = 2.0

communicator: Communicator | None = None
_first_all_reduce = True


def after_scheduler_init(result: None, scheduler: Any, *args: object, **kwargs: object) -> None:
    """AFTER `Scheduler.__init__`: open the communicator, print the `engine` receipt.

    The ranks are the engine's own. Raises SystemExit on every rank when one cannot take part.
    """
    from sglang.srt.distributed.parallel_state import get_tp_group

    global communicator
    group = get_tp_group()
    try:
        communicator = open_communicator(group)
    except (RefusedError, BuildError, ValueError) as error:
        receipts.refuse([f"collectives: {error}"])
    if communicator is not None:
        watchdog.watch_in_background(communicator)
        if RUN_DIR in os.environ:
            path = progress_path(Path(os.environ[RUN_DIR]), group.rank_in_group)
            write_in_background(path, communicator.state)
    receipts.emit(
        "engine",
        rank=group.rank_in_group,
        world=group.world_size,
        engine=receipts.engine_version(),
        plugin=version("tetraspark"),
        hooks=[hook.target.path for hook in hooks_of("scheduler", cuda=on_cuda())],
        transport=communicator.route if communicator else "off",
    )
    guard_scheduler.start(group.rank_in_group, group.world_size)


def _ours(group: Any) -> Communicator | None:
    """Return the communicator if it stands beside this engine group."""
    return communicator if communicator is not None and communicator.carries(group) else None


def around_all_reduce(original: Callable[[Any, Any], Any], group: Any, tensor: Any) -> Any:
    """AROUND `GroupCoordinator.all_reduce`: carry what fits, leave the rest to the engine.

    `tensor` is (rows, hidden) in the model's dtype. The first one of the TP group prints a
    receipt with its route.
    """
    ours = _ours(group)
    if ours is not None and ours.reduces(tensor):
        result, route = ours.all_reduce(tensor), ours.route
    else:
        result, route = original(group, tensor), "engine"
    if _first_all_reduce and group.unique_name.startswith("tp:"):
        _print_route(group, tensor, route)
    return result


def _print_route(group: Any, tensor: Any, route: str) -> None:
    global _first_all_reduce
    _first_all_reduce = False
    ours = _ours(group)
    receipts.emit(
        "tp_all_reduce",
        rank=group.rank_in_group,
        world=group.world_size,
        route=route,
        algorithm=ours.algorithm(tensor.nbytes) if ours and route == ours.route else None,
        limit=ours.settings.max_reduce_bytes if ours else 0,
        two_shot_limit=ours.settings.max_two_shot_bytes if ours else 0,
        two_shot_from=ours.settings.two_shot_from if ours else None,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=list(tensor.shape),
        bytes=tensor.nbytes,
    )


def around_all_gather(
    original: Callable[..., Any], group: Any, tensor: Any, dim: int = -1, *rest: Any, **named: Any
) -> Any:
    """AROUND `GroupCoordinator.all_gather`: carry shards that fit."""
    ours = _ours(group)
    if ours is not None and not rest and not named and ours.gathers(tensor):
        return ours.all_gather(tensor, dim)
    return original(group, tensor, dim, *rest, **named)


def around_all_gather_into(
    original: Callable[..., Any], group: Any, output: Any, tensor: Any
) -> None:
    """AROUND `GroupCoordinator.all_gather_into_tensor`: carry shards that fit."""
    ours = _ours(group)
    if ours is not None and ours.gathers(tensor):
        ours.all_gather_into(output, tensor)
    else:
        original(group, output, tensor)


def before_results(scheduler: Any, batch: Any, result: Any) -> None:
    """BEFORE `Scheduler.process_batch_result`: no output is used before the group is checked."""
    if communicator is not None:
        communicator.check(result)


def before_grammar(processor: Any, result: Any, *args: Any, **kwargs: Any) -> None:
    """BEFORE `advance_grammar_fsm`, which may read results before they are processed."""
    if communicator is not None:
        communicator.check(result)


def around_event_loop(original: Callable[[Any], None], scheduler: Any) -> None:
    """AROUND `Scheduler.run_event_loop`: an error of the engine may be a dead rank's doing.

    Between two steps the ranks share requests through the engine's own group, which says only
    that a connection was closed. Raises CollectiveError, with the rank that all name, in its place.
    """
    try:
        original(scheduler)
    except CollectiveError:
        raise
    except Exception:
        if communicator is not None:
            communicator.look_for_cause(CAUSE_SECONDS)
        raise
    finally:
        watchdog.leaving.set()


def after_sequence_lengths(result: None, *args: Any, **kwargs: Any) -> None:
    """AFTER `resolve_seq_lens_cpu`, which reads lengths of a step not yet processed."""
    if communicator is not None:
        communicator.check(None)
