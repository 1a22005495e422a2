"""All tasks, and the choice of some of them."""

from collections.abc import Sequence

from tetraspark.errors import Problem, UsageError
from tetraspark.measure.quality.code_tasks import CODE_TASKS
from tetraspark.measure.quality.format_tasks import FORMAT_TASKS
from tetraspark.measure.quality.json_tasks import JSON_TASKS
from tetraspark.measure.quality.number_tasks import NUMBER_TASKS
from tetraspark.measure.quality.task import KINDS, Task

TASKS: tuple[Task, ...] = CODE_TASKS + JSON_TASKS + NUMBER_TASKS + FORMAT_TASKS


def chosen(only: Sequence[str]) -> tuple[Task, ...]:
    """Return the tasks of these IDs and kinds, all of them for none, in the order of TASKS.

    Raises UsageError for a name that is neither.
    """
    known = {*KINDS, *(task.id for task in TASKS)}
    wanted = [name.strip().upper() for name in only]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        kinds = f"{', '.join(KINDS)}, or an ID such as {TASKS[0].id}"
        problem = Problem("--only", repr(unknown[0]), kinds, "tetraspark quality --list")
        raise UsageError(problem)
    return tuple(task for task in TASKS if not wanted or {task.id, task.kind} & set(wanted))
