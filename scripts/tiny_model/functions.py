"""Small Python functions, alone or several in a file."""

from dataclasses import dataclass
from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.copying import invented
from scripts.tiny_model.lexicon import COMMON, WORDS
from scripts.tiny_model.split import Split, draw


@dataclass(frozen=True)
class Function:
    """What a function does, in words; its usual name, its parameters, and its lines."""

    does: str
    name: str
    parameters: str
    body: tuple[str, ...]

    def source(self, name: str) -> str:
        """Return the function's text under a name."""
        lines = [f"def {name}({self.parameters}):", *(f"    {line}" for line in self.body)]
        return "\n".join(lines)


def _short(does: str, name: str, parameters: str, value: str) -> Function:
    return Function(does, name, parameters, (f"return {value}",))


FUNCTIONS = (
    _short("adds two numbers", "add", "a, b", "a + b"),
    _short("subtracts two numbers", "subtract", "a, b", "a - b"),
    _short("multiplies two numbers", "multiply", "a, b", "a * b"),
    _short("divides two numbers", "divide", "a, b", "a / b"),
    _short("doubles a number", "double", "a", "2 * a"),
    _short("squares a number", "square", "a", "a * a"),
    _short("negates a number", "negate", "a", "-a"),
    _short("returns the larger of two numbers", "larger", "a, b", "a if a > b else b"),
    _short("returns the smaller of two numbers", "smaller", "a, b", "a if a < b else b"),
    _short("tells whether a number is even", "is_even", "a", "a % 2 == 0"),
    _short("tells whether a number is odd", "is_odd", "a", "a % 2 == 1"),
    _short("returns the length of a list", "length", "items", "len(items)"),
    _short("returns the first item of a list", "first", "items", "items[0]"),
    _short("returns the last item of a list", "last", "items", "items[-1]"),
    _short("reverses a list", "reverse", "items", "items[::-1]"),
    _short("sorts a list", "sort", "items", "sorted(items)"),
    Function(
        "sums a list",
        "total",
        "items",
        ("result = 0", "for item in items:", "    result += item", "return result"),
    ),
    Function(
        "counts the even numbers of a list",
        "count_even",
        "items",
        (
            "result = 0",
            "for item in items:",
            "    if item % 2 == 0:",
            "        result += 1",
            "return result",
        ),
    ),
    Function(
        "returns the largest item of a list",
        "largest",
        "items",
        (
            "result = items[0]",
            "for item in items:",
            "    if item > result:",
            "        result = item",
            "return result",
        ),
    ),
    Function(
        "computes the factorial of a number",
        "factorial",
        "n",
        ("result = 1", "for i in range(2, n + 1):", "    result *= i", "return result"),
    ),
    Function(
        "computes a Fibonacci number",
        "fibonacci",
        "n",
        ("a, b = 0, 1", "for i in range(n):", "    a, b = b, a + b", "return a"),
    ),
)


def function(random: Random, split: Split) -> Conversation:
    """Ask for one function, most often under a name of the question's own.

    Held out are names, as the functions themselves must all be seen.
    """
    chosen = random.choice(FUNCTIONS)
    if split == "training" and random.random() < 0.4:
        return asked(f"Write a Python function that {chosen.does}.", chosen.source(chosen.name))
    name = draw(split, lambda: _name(random), lambda name: f"{name} {chosen.does}")
    question = f"Write a Python function called {name} that {chosen.does}."
    return asked(question, chosen.source(name))


def module(random: Random, split: Split) -> Conversation:
    """Ask for a file of three to eight functions."""

    def one() -> list[Function]:
        return random.sample(FUNCTIONS, random.randint(3, 8))

    chosen = draw(split, one, lambda drawn: " ".join(one.name for one in drawn))
    names = ", ".join(one.name for one in chosen)
    sources = [one.source(one.name) for one in chosen]
    return asked(f"Write a Python file with the functions {names}.", "\n\n\n".join(sources))


def _name(random: Random) -> str:
    words = (random.choice(COMMON), random.choice(WORDS), invented(random), invented(random))
    return "_".join(random.choices(words, k=random.randint(1, 3)))
