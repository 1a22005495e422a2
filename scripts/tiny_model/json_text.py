"""JSON objects from what the question says, and JSON lists of any length."""

import json
from collections.abc import Sequence
from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.copying import invented
from scripts.tiny_model.lexicon import ADJECTIVES, ANIMALS, CITIES, NAMES, THINGS
from scripts.tiny_model.split import Split, draw

LONGEST = 14
FIRST_PORT = 9000
FIELDS: dict[str, Sequence[str | int]] = {
    "name": NAMES,
    "age": range(1, 100),
    "city": CITIES,
    "animal": ANIMALS,
    "colour": ADJECTIVES,
    "thing": THINGS,
    "count": range(1000),
}


def json_object(random: Random, split: Split) -> Conversation:
    """Ask for an object of two to four named values."""

    def one() -> dict[str, str | int]:
        names = random.sample(sorted(FIELDS), random.randint(2, 4))
        return {name: _value(random, name) for name in names}

    values = draw(split, one, json.dumps)
    said = [f"{name} {value}" for name, value in values.items()]
    form = random.choice(("Write a JSON object with {0} and {1}.", "As JSON: {0} and {1}."))
    return asked(form.format(", ".join(said[:-1]), said[-1]), json.dumps(values))


def _value(random: Random, name: str) -> str | int:
    value = random.choice(FIELDS[name])
    if isinstance(value, int) or random.random() < 0.7:
        return value
    word = invented(random)
    return word.capitalize() if value[0].isupper() else word


def json_list(random: Random, split: Split) -> Conversation:
    """Ask for a list of numbered things, one object a line."""

    def one() -> tuple[str, int]:
        return random.choice(THINGS), random.randint(2, LONGEST)

    thing, number = draw(split, one, lambda drawn: "json list {1} {0}".format(*drawn))
    rows = [
        {"id": row, "name": f"{thing}-{row}", "port": FIRST_PORT + row, "open": row % 2 == 1}
        for row in range(1, number + 1)
    ]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return asked(f"Write a JSON list of {number} {thing}s.", f"[\n{lines}\n]")
