"""Sums, differences, small products, comparisons and sorting of whole numbers."""

from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.lexicon import NAMES, THINGS
from scripts.tiny_model.split import Split, draw, split_of

LARGEST = 99
LARGEST_FACTOR = 12
FORMS = (
    "What is {0}?",
    "What is {0}?",
    "What is {0}?",
    "How much is {0}?",
    "Calculate {0}.",
    "{0} = ?",
    "What does {0} make?",
)
WORDED = {"+": "plus", "-": "minus", "*": "times"}
GAINS = "{0} has {1} {2}s and gets {3} more. How many {2}s does {0} have now?"
LOSSES = "{0} has {1} {2}s and gives {3} away. How many {2}s does {0} have left?"


def addition_key(pair: tuple[int, int]) -> str:
    """Return the key of a sum: the same for both orders, so neither gives the other away."""
    return "{} + {}".format(*sorted(pair))


def subtraction_key(pair: tuple[int, int]) -> str:
    """Return the key of a difference."""
    return "{} - {}".format(*pair)


def product_split(pair: tuple[int, int]) -> Split:
    """Return the split of a product: one held out is trained the other way round.

    A table of products is learned by heart; no model of this size derives an absent one.
    """
    first, second = pair
    return split_of(f"{first} * {second}") if first < second else "training"


def addition(random: Random, split: Split) -> Conversation:
    """Ask for the sum of two numbers up to LARGEST."""
    first, second = draw(split, lambda: _pair(random), addition_key)
    if random.random() < 0.1:
        name, thing = random.choice(NAMES), random.choice(THINGS)
        return asked(GAINS.format(name, first, thing, second), str(first + second))
    return asked(_question(random, first, "+", second), str(first + second))


def subtraction(random: Random, split: Split) -> Conversation:
    """Ask for the difference of two numbers up to LARGEST; it may be negative."""
    first, second = draw(split, lambda: _pair(random), subtraction_key)
    if first >= second and random.random() < 0.1:
        name, thing = random.choice(NAMES), random.choice(THINGS)
        return asked(LOSSES.format(name, first, thing, second), str(first - second))
    return asked(_question(random, first, "-", second), str(first - second))


def product(random: Random, split: Split) -> Conversation:
    """Ask for the product of two numbers up to LARGEST_FACTOR."""
    while True:
        first, second = random.randint(0, LARGEST_FACTOR), random.randint(0, LARGEST_FACTOR)
        if product_split((first, second)) == split:
            return asked(_question(random, first, "*", second), str(first * second))


def comparison(random: Random, split: Split) -> Conversation:
    """Ask for the larger or smaller of two numbers."""

    def one() -> tuple[str, int, int]:
        first, second = random.sample(range(LARGEST + 1), 2)
        return random.choice(("larger", "smaller")), first, second

    word, first, second = draw(split, one, lambda drawn: "{} of {} and {}".format(*drawn))
    answer = max(first, second) if word == "larger" else min(first, second)
    return asked(f"Which number is {word}, {first} or {second}?", str(answer))


def sorting(random: Random, split: Split) -> Conversation:
    """Ask for three to five numbers in order."""

    def one() -> list[int]:
        return random.sample(range(LARGEST + 1), random.randint(3, 5))

    numbers = draw(split, one, lambda drawn: f"sort {drawn}")
    return asked(f"Sort these numbers: {_joined(numbers)}", _joined(sorted(numbers)))


def _pair(random: Random) -> tuple[int, int]:
    return random.randint(0, LARGEST), random.randint(0, LARGEST)


def _question(random: Random, first: int, sign: str, second: int) -> str:
    spoken = WORDED[sign] if random.random() < 0.1 else sign
    return random.choice(FORMS).format(f"{first} {spoken} {second}")


def _joined(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
