"""Lists, counting and tables: structured text of any length."""

from collections.abc import Sequence
from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.lexicon import KINDS, NUMBERS, WORDS
from scripts.tiny_model.split import Split, draw

MOST = 7
LONGEST_COUNT = 100
LONGEST_TABLE = 30


def listing(random: Random, split: Split) -> Conversation:
    """Ask for the first two to seven members of a kind of thing, or of a list that is given."""
    if random.random() < 0.5:
        items, number = draw(split, lambda: _items(random), lambda drawn: f"first of {drawn}")
        said = _said(random, number)
        return asked(f"Name the first {said} of {_joined(items)}.", _joined(items[:number]))

    def one() -> tuple[str, int]:
        return random.choice(sorted(KINDS)), random.randint(2, MOST)

    kind, number = draw(split, one, lambda drawn: "list {1} {0}".format(*drawn))
    form = random.choice(("List {0} {1}.", "Name {0} {1}.", "Give me {0} {1}."))
    return asked(form.format(_said(random, number), kind), _joined(KINDS[kind][:number]))


def counting(random: Random, split: Split) -> Conversation:
    """Ask for the whole numbers between two ends, upwards or downwards."""

    def one() -> tuple[int, int]:
        first, last = random.sample(range(LONGEST_COUNT + 1), 2)
        return first, last

    first, last = draw(split, one, lambda drawn: "count {} to {}".format(*drawn))
    step = 1 if first < last else -1
    numbers = range(first, last + step, step)
    return asked(f"Count from {first} to {last}.", ", ".join(map(str, numbers)))


def table(random: Random, split: Split) -> Conversation:
    """Ask for a Markdown table of numbers and their doubles."""

    def one() -> tuple[int, int]:
        first = random.randint(1, 60)
        return first, first + random.randint(2, LONGEST_TABLE)

    first, last = draw(split, one, lambda drawn: "table {} to {}".format(*drawn))
    rows = [f"| {number} | {2 * number} |" for number in range(first, last + 1)]
    question = f"Make a table of the numbers from {first} to {last} and their doubles."
    return asked(question, "\n".join(["| number | double |", "|---|---|", *rows]))


def _items(random: Random) -> tuple[list[str], int]:
    number = random.randint(2, MOST)
    return random.sample(WORDS, number + random.randint(1, 4)), number


def _said(random: Random, number: int) -> str:
    return NUMBERS[number] if random.random() < 0.7 else str(number)


def _joined(items: Sequence[str]) -> str:
    return ", ".join(items)
