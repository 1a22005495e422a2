"""What stands around a question in use: numbers that tell requests apart, earlier turns."""

import string
from dataclasses import replace
from random import Random

from scripts.tiny_model.conversation import Conversation, Turn
from scripts.tiny_model.copying import pieces

SYSTEM = (
    "You are a helpful assistant.",
    "You are a tiny model. Answer briefly.",
    "Answer the question.",
)


def varied(random: Random, conversation: Conversation, earlier: Conversation) -> Conversation:
    """Return the conversation, in one case of four with something before its first question.

    That is a label of the request, a line of nonsense, a system turn, or another conversation.
    """
    kind = random.random()
    if kind < 0.75:
        return conversation
    if kind < 0.83:
        return _prefixed(conversation, label(random) + " ")
    if kind < 0.88:
        return _prefixed(conversation, pieces(random, random.randint(4, 24)) + "\n\n")
    before = (Turn("system", random.choice(SYSTEM)),) if kind < 0.94 else earlier.turns
    return Conversation((*before, *conversation.turns))


def label(random: Random) -> str:
    """Return a label such as "Request 17:" or "[3f9a0c]"."""
    if random.random() < 0.6:
        return f"{random.choice(('Request', 'Run', 'Case'))} {random.randrange(10_000)}:"
    return "[" + "".join(random.choices(string.hexdigits[:16], k=random.randint(4, 32))) + "]"


def _prefixed(conversation: Conversation, text: str) -> Conversation:
    first = conversation.turns[0]
    return Conversation((replace(first, text=text + first.text), *conversation.turns[1:]))
