"""The tasks: how many, how named, that each can be solved, and that wrong answers are wrong."""

from collections import Counter

import pytest

from tests.measure.quality.reference import RIGHT, WRONG
from tetraspark.errors import UsageError
from tetraspark.measure.quality.catalogue import TASKS, chosen
from tetraspark.measure.quality.extract import without_thought
from tetraspark.measure.quality.numerals import numbers
from tetraspark.measure.quality.scoring import fault_of
from tetraspark.measure.quality.task import Code, Number, Task

BY_ID = {task.id: task for task in TASKS}
WITHOUT_CODE = [task for task in TASKS if task.kind != "CODE"]


def fault(task: Task, answer: str) -> str | None:
    return fault_of(task, without_thought(answer), None)


def test_there_are_75_each_with_an_id_and_a_prompt_of_its_own() -> None:
    assert len(TASKS) == len(BY_ID) == len({task.prompt for task in TASKS}) == 75
    counts = Counter(task.kind for task in TASKS)
    assert counts == {"CODE": 25, "JSON": 15, "NUMBER": 20, "FORMAT": 15}
    numbered = [f"{kind}.{one:03}" for kind, count in counts.items() for one in range(1, count + 1)]
    assert [task.id for task in TASKS] == numbered


def test_every_task_has_a_reference() -> None:
    assert RIGHT.keys() == BY_ID.keys()


@pytest.mark.parametrize("task", WITHOUT_CODE, ids=lambda task: task.id)
def test_a_right_answer_is_right(task: Task) -> None:
    assert fault(task, RIGHT[task.id]) is None


@pytest.mark.parametrize("task", WITHOUT_CODE, ids=lambda task: task.id)
def test_the_prompt_itself_and_no_answer_are_wrong(task: Task) -> None:
    assert fault(task, task.prompt) is not None
    assert fault(task, "") == "no answer"


@pytest.mark.parametrize(
    ("name", "answer"), [(name, answer) for name, answers in WRONG.items() for answer in answers]
)
def test_a_wrong_answer_is_wrong(name: str, answer: str) -> None:
    assert fault(BY_ID[name], answer)


@pytest.mark.parametrize("task", WITHOUT_CODE, ids=lambda task: task.id)
def test_no_task_takes_the_answer_of_another(task: Task) -> None:
    taken = [
        other.id for other in TASKS if other is not task and fault(task, RIGHT[other.id]) is None
    ]
    # `Write a JSON list of 3 lamps.` tells nothing of the lamps: any three objects are lamps.
    allowed = {"JSON.008", "JSON.012", "JSON.015"} if task.id == "JSON.005" else set()
    assert set(taken) <= allowed


def test_the_prompts_numbers_are_never_the_answer() -> None:
    for task in TASKS:
        if isinstance(task.scorer, Number) and task.scorer.how != "bare":
            near = [abs(abs(one) - abs(task.scorer.value)) for one in numbers(task.prompt)]
            assert min(near, default=1) > task.scorer.within, task.id


def test_a_task_refuses_what_it_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"CODE\.1"):
        Task("CODE.1", "?", Number(1, "new"), 8)
    with pytest.raises(ValueError, match="Number"):
        Task("CODE.001", "?", Number(1, "new"), 8)
    with pytest.raises(ValueError, match="nothing"):
        Task("NUMBER.001", " ", Number(1, "new"), 8)
    with pytest.raises(ValueError, match="guessed"):
        Code(())


def test_tasks_are_chosen_by_id_and_kind() -> None:
    names = [task.id for task in chosen(["number.002", "JSON"])]
    assert names == [*(f"JSON.{one:03}" for one in range(1, 16)), "NUMBER.002"]
    assert chosen([]) == TASKS
    with pytest.raises(UsageError, match=r"CODE\.999"):
        chosen(["CODE.999"])
