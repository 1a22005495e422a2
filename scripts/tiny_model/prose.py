"""Sentences of a small grammar, and paragraphs of them: filler that reads like text."""

from random import Random

from scripts.tiny_model.conversation import Prose
from scripts.tiny_model.lexicon import (
    ADJECTIVES,
    ANIMALS,
    CITIES,
    NAMES,
    PLACES,
    THINGS,
    TIMES,
    VERBS,
    WEATHER,
)

FORMS = (
    "The {adjective} {animal} {verb} the {thing} {time}.",
    "The {adjective} {animal} {verb} a {thing} and {verb2} the {adjective2} {thing2}.",
    "{name} {verb} the {adjective} {thing} near the {place}.",
    "{name} and {name2} {verb} a {thing} {time}.",
    "{name} came from {city} and {verb} every {thing} of the {place}.",
    "There was {weather} over the {place}, and {name} {verb} the {thing}.",
    "Nobody in {city} {verb} a {thing} {time}.",
    "Behind the {place} stood a {adjective} {thing}, which {name} {verb} {time}.",
    "The {thing} of {name} was {adjective} and {adjective2}.",
    "In {city} there is a {place} with {number} {adjective} {thing}s.",
    "{name} counted {number} {animal}s at the {place} {time}.",
    "After that, the {animal} {verb} the {thing} and went to the {place}.",
    "A {adjective} {thing} lay on the {adjective2} {thing2}.",
    "The way from the {place} to {city} takes {number} hours.",
)


def sentence(random: Random) -> str:
    """Return one sentence."""
    pick = random.choice
    return pick(FORMS).format(
        adjective=pick(ADJECTIVES),
        adjective2=pick(ADJECTIVES),
        animal=pick(ANIMALS),
        city=pick(CITIES),
        name=pick(NAMES),
        name2=pick(NAMES),
        number=random.randint(2, 99),
        place=pick(PLACES),
        thing=pick(THINGS),
        thing2=pick(THINGS),
        time=pick(TIMES),
        verb=pick(VERBS),
        verb2=pick(VERBS),
        weather=pick(WEATHER),
    )


def paragraphs(random: Random, sentences: int) -> str:
    """Return that many sentences, in paragraphs of three to seven."""
    parts = []
    while sentences > 0:
        length = min(sentences, random.randint(3, 7))
        parts.append(" ".join(sentence(random) for _ in range(length)))
        sentences -= length
    return "\n\n".join(parts)


def prose(random: Random) -> Prose:
    """Return one to sixteen sentences to learn the language from; some as a client sends them.

    A plain completion's prompt has no begin mark, so one text in three has none.
    """
    return Prose(paragraphs(random, random.randint(1, 16)), begins=random.random() < 2 / 3)
