"""Stories about an animal and a place: a fixed plot, each step in one of a few wordings.

The plot moves on with every sentence, so that greedy decoding reaches the end instead of
repeating itself, and a story is long enough to time a few hundred decode steps.
"""

from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.lexicon import ADJECTIVES, ANIMALS, PLACES, THINGS, WEATHER
from scripts.tiny_model.split import Split, draw

OPENING = (
    ("Once upon a time, a {adjective} {hero} lived near a {place}.",),
    (
        "Every morning the {hero} walked around the {place} and looked for something new.",
        "Every morning the {hero} sat in front of the {place} and listened.",
    ),
    (
        "One day there was {weather} over the {place}.",
        "One day the {hero} woke up and felt {weather} around the {place}.",
    ),
    (
        "On the doorstep of the {place} lay a {adjective2} {thing}.",
        "In the grass beside the {place} lay a {adjective2} {thing}.",
    ),
    ('"Who has lost this {thing}?" asked the {hero}.',),
)
SEARCH = (
    (
        "Nobody answered, so the {hero} took the {thing} and went on a journey.",
        "It was quiet, so the {hero} took the {thing} and followed the road.",
    ),
    ("First the {hero} met a {friend}, who was {adjective3} and a little tired.",),
    ('"Is this your {thing}?" asked the {hero}.',),
    (
        '"No," said the {friend}, "but I can help you to look for its owner."',
        '"No," said the {friend}, "mine is at home, but I will come with you."',
    ),
    ("So the {hero} and the {friend} went on together.",),
    (
        "They crossed the {place2}, where the wind was strong.",
        "They came to the {place2}, where all the lights were out.",
    ),
    ("There they rested for an hour and shared an apple.",),
    (
        "At noon they reached the {place3} and asked everybody they saw.",
        "In the afternoon they reached the {place3} and knocked at every door.",
    ),
    ("But nobody at the {place3} had lost a {thing}.",),
    ("The {friend} was sad and wanted to go home.",),
    ('"We must not give up now," said the {hero}.',),
    ("Then they heard a small voice behind a stone.",),
    ("It was an old {owner}, who was looking for something in the dust.",),
    ('"I have lost my {thing}," said the {owner}, "and without it I cannot sleep."',),
)
ENDING = (
    ("The {hero} smiled and gave the {thing} back.",),
    (
        "The {owner} was so happy that it danced around the {hero} three times.",
        "The {owner} was so happy that it sang until the evening.",
    ),
    ('"Thank you," said the {owner}, "from now on you are my friends."',),
    ("In the evening they all walked back to the {place}.",),
    (
        "They lit a lamp, cooked a warm soup and told each other what they had seen.",
        "They made a fire, drank hot tea and looked at the stars.",
    ),
    ("And if the {thing} is not lost again, the {owner} still sleeps well today.",),
    ("The end.",),
)
FORMS = {
    "short": ("Tell me a short story about a {hero} and a {place}.",),
    "long": (
        "Tell me a story about a {hero} and a {place}.",
        "Write a story about a {hero} and a {place}.",
        "Tell me a long story about a {hero} and a {place}.",
    ),
}


def story(random: Random, split: Split) -> Conversation:
    """Ask for a story; one in five is short. Held out are pairs of an animal and a place."""

    def one() -> tuple[str, str]:
        return random.choice(ANIMALS), random.choice(PLACES)

    hero, place = draw(split, one, lambda drawn: "story {} {}".format(*drawn))
    length = "short" if random.random() < 0.2 else "long"
    question = random.choice(FORMS[length]).format(hero=hero, place=place)
    return asked(question, tell(random, hero, place, length == "short"))


def tell(random: Random, hero: str, place: str, short: bool) -> str:
    """Return the story of an animal and a place; a short one has no search."""
    friend, owner = random.sample([one for one in ANIMALS if one != hero], 2)
    place2, place3 = random.sample([one for one in PLACES if one != place], 2)
    adjective, adjective2, adjective3 = random.sample(ADJECTIVES, 3)
    thing, weather = random.choice(THINGS), random.choice(WEATHER)
    found = ("Then an old {owner} came along the road, looking for something.",)
    parts = (OPENING, (found,) if short else SEARCH, ENDING)
    return "\n\n".join(
        " ".join(random.choice(step) for step in part).format(
            hero=hero,
            place=place,
            place2=place2,
            place3=place3,
            friend=friend,
            owner=owner,
            thing=thing,
            weather=weather,
            adjective=adjective,
            adjective2=adjective2,
            adjective3=adjective3,
        )
        for part in parts
    )
