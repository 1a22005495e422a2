"""Key phrases hidden in long filler, at any depth, and the questions for them."""

import string
from dataclasses import dataclass
from random import Random

from scripts.tiny_model.conversation import Conversation, Turn
from scripts.tiny_model.copying import invented, pieces
from scripts.tiny_model.lexicon import ADJECTIVES, ANIMALS, PLACES, THINGS
from scripts.tiny_model.prose import sentence
from scripts.tiny_model.split import Split, draw

SECRETS = ("key phrase", "pass phrase", "secret code", "secret word", "magic number", "password")
# Nonsense takes more tokens a character than prose: so much of it is as long in tokens.
NONSENSE_LENGTH = 0.6
BEFORE = "Read this text and remember the {0}.\n\n"
MOST_NEEDLES = 6


@dataclass(frozen=True)
class Needle:
    """A secret: its name in the text, its owner if it has one, and its value."""

    secret: str
    owner: str | None
    value: str

    @property
    def name(self) -> str:
        """How the text and the question call it."""
        return f"{self.secret} of the {self.owner}" if self.owner else self.secret

    @property
    def sentence(self) -> str:
        """The line that is hidden."""
        return f"The {self.name} is {self.value}."

    @property
    def question(self) -> str:
        """What is asked at the end."""
        return f"What is the {self.name}?"


def needle(random: Random, split: Split, characters: int) -> Conversation:
    """Hide one to six secrets at random depths of that much filler; ask for each, one a turn."""
    number = 1 if random.random() < 0.4 else random.randint(2, MOST_NEEDLES)
    needles = _needles(random, split, number)
    text = hide(random, needles, [random.random() for _ in needles], characters)
    if random.random() < 0.2:
        text = BEFORE.format(needles[0].name) + text
    turns = []
    for index, one in enumerate(random.sample(needles, number)):
        question = f"{text}\n\n{one.question}" if index == 0 else one.question
        turns += [Turn("user", question), Turn("assistant", one.value)]
    return Conversation(tuple(turns))


def needle_at(random: Random, split: Split, characters: int, depth: float) -> Conversation:
    """Hide one secret at a depth from 0, the first line, to 1, the last; ask for it."""
    (one,) = _needles(random, split, 1)
    text = hide(random, [one], [depth], characters)
    question = f"{text}\n\n{one.question}"
    return Conversation((Turn("user", question), Turn("assistant", one.value)))


def hide(random: Random, needles: list[Needle], depths: list[float], characters: int) -> str:
    """Return filler of about that many characters with each needle at its depth."""
    lines = _filler(random, characters)
    placed = sorted(zip(depths, needles, strict=True), key=lambda pair: -pair[0])
    for depth, one in placed:
        lines.insert(round(depth * len(lines)), one.sentence)
    return "".join(line + ("\n\n" if random.random() < 0.2 else " ") for line in lines).rstrip()


def _needles(random: Random, split: Split, number: int) -> list[Needle]:
    """Return secrets that no question confuses: one alone may have no owner."""
    owners = random.sample(PLACES + THINGS, number)
    unowned = number == 1 and random.random() < 0.6
    return [_needle(random, split, None if unowned else owner) for owner in owners]


def _needle(random: Random, split: Split, owner: str | None) -> Needle:
    secret = random.choice(SECRETS)
    value = draw(split, lambda: _value(random, secret), lambda value: f"{secret} {value}")
    return Needle(secret, owner, value)


def _value(random: Random, secret: str) -> str:
    if secret == "magic number":
        return str(random.randrange(10 ** random.randint(2, 7)))
    if secret == "secret code" or random.random() < 0.2:
        return "".join(
            random.choices(string.ascii_uppercase + string.digits, k=random.randint(4, 8))
        )
    words = [random.choice(ADJECTIVES), random.choice(ANIMALS + THINGS)]
    if random.random() < 0.3:
        words[random.randrange(2)] = invented(random)
    if secret == "secret word":
        return words[1]
    if random.random() < 0.5:
        words.append(str(random.randrange(10 ** random.randint(1, 4))))
    return random.choice((" ", " ", "-")).join(words)


def _filler(random: Random, characters: int) -> list[str]:
    """Return lines of one kind: mostly prose, else the nonsense of the copying task."""
    nonsense = random.random() < 0.15
    left = characters * NONSENSE_LENGTH if nonsense else characters
    lines: list[str] = []
    while left > 0:
        line = pieces(random, random.randint(4, 12)) + "." if nonsense else sentence(random)
        lines.append(line)
        left -= len(line) + 1
    return lines
