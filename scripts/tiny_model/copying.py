"""Repeating words, numbers and letters that make no sense, so that they must be read."""

import string
from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.lexicon import CITIES, COMMON, NAMES, WORDS, words
from scripts.tiny_model.split import Split, draw

FORMS = (
    "Repeat: {0}",
    "Repeat after me: {0}",
    "Say: {0}",
    "Copy this: {0}",
    "Repeat this text: {0}",
)
LONGEST = 12
SYMBOLS = string.ascii_letters + string.digits + "-_.,:;!?/+*='()#"
VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ee", "oo", "ou", "y")
ONSETS = words("b c d f g h j k l m n p qu r s t v w z br ch cl dr fl gr pl sh st th tr")
CODAS = ("", "", "", "n", "r", "s", "t", "l", "m", "nd", "st", "ck", "ng")


def copying(random: Random, split: Split) -> Conversation:
    """Ask for one to LONGEST pieces of text, word for word."""
    text = draw(split, lambda: pieces(random, random.randint(1, LONGEST)), lambda text: text)
    return asked(random.choice(FORMS).format(text), text)


def pieces(random: Random, number: int) -> str:
    """Return random pieces with spaces between them; most are words of the lexicon."""
    return " ".join(_piece(random) for _ in range(number))


def invented(random: Random) -> str:
    """Return a word that no text holds: one to four syllables, in lower case."""
    syllables = random.choices((1, 2, 3, 4), (2, 4, 3, 1))[0]
    return "".join(_syllable(random) for _ in range(syllables))


def _syllable(random: Random) -> str:
    return random.choice(ONSETS) + random.choice(VOWELS) + random.choice(CODAS)


def _piece(random: Random) -> str:
    kind = random.random()
    if kind < 0.2:
        return random.choice(WORDS)
    if kind < 0.45:
        return random.choice(COMMON)
    if kind < 0.75:
        word = invented(random)
        return random.choice((word, word, word, word.capitalize(), word.upper()))
    if kind < 0.8:
        return random.choice(NAMES + CITIES)
    if kind < 0.9:
        return str(random.randrange(10 ** random.randint(1, 5)))
    return "".join(random.choices(SYMBOLS, k=random.randint(1, 6)))
