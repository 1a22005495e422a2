"""What the model is trained and tested on, and how often each is drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from scripts.tiny_model import (
    arithmetic,
    copying,
    functions,
    json_text,
    listing,
    small_talk,
    story,
)
from scripts.tiny_model.conversation import Conversation
from scripts.tiny_model.needle import needle
from scripts.tiny_model.split import Split

Draw = Callable[[Random, Split], Conversation]


@dataclass(frozen=True)
class Task:
    """A kind of question: how to draw one, its share of the draws, and how it is judged.

    `exact` tasks have one right answer. The others are judged by whether the answer ends.
    """

    name: str
    draw: Draw
    weight: float
    exact: bool = True


def _needle(random: Random, split: Split, least: int, most: int) -> Conversation:
    return needle(random, split, random.randint(least, most))


TASKS = (
    Task("addition", arithmetic.addition, 26),
    Task("subtraction", arithmetic.subtraction, 22),
    Task("product", arithmetic.product, 8),
    Task("comparison", arithmetic.comparison, 5),
    Task("sorting", arithmetic.sorting, 5),
    Task("copying", copying.copying, 16),
    Task("needle, short", partial(_needle, least=0, most=200), 5),
    Task("needle, medium", partial(_needle, least=200, most=800), 4),
    Task("listing", listing.listing, 6),
    Task("counting", listing.counting, 2),
    Task("table", listing.table, 3),
    Task("JSON object", json_text.json_object, 4),
    Task("JSON list", json_text.json_list, 1.5),
    Task("function", functions.function, 4),
    Task("module", functions.module, 1.5),
    Task("small talk", small_talk.small_talk, 3),
    Task("story", story.story, 4, exact=False),
)
# Drawn apart: a few of them weigh as much as thousands of the others. Characters of filler.
LONG_NEEDLES = ((800, 4200), (4200, 12000))
