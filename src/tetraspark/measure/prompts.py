"""Prompts of the decode benchmark: four kinds of text, none the same twice."""

import random
from typing import Literal, get_args

Kind = Literal["prose", "code", "structured", "json"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# What the bundled tiny model can answer too, at a length that shows decoding.
TASKS: dict[Kind, str] = {
    "prose": "Tell me a story about a fox and a lighthouse.",
    "code": "Write a Python file with the functions add, largest, count_words and reverse.",
    "structured": "Count from 1 to 100.",
    "json": "Write a JSON list of 14 lamps.",
}


def prompt(kind: Kind, seed: int, number: int) -> str:
    """Return a prompt whose first words no other request has, so that no prefix is cached."""
    mark = random.Random(f"{seed} {kind} {number}").getrandbits(24)
    return f"[{mark:06x}] {TASKS[kind]}"
