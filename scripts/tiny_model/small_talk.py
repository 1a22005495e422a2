"""Greetings, questions about the model itself, and a few facts: all learned by heart."""

from random import Random

from scripts.tiny_model.conversation import Conversation, asked
from scripts.tiny_model.lexicon import KINDS
from scripts.tiny_model.split import Split

HELLO = (
    "Hello! I am a tiny model of four layers. Ask me to add two numbers, to repeat some words, "
    "to list three colours or to tell a story."
)
TALK = {
    "Hello?": HELLO,
    "Hello!": HELLO,
    "Hello": HELLO,
    "Hi": HELLO,
    "Hi!": HELLO,
    "Good morning!": HELLO,
    "Who are you?": "I am a tiny model of four layers, made to show that a line works.",
    "What are you?": "I am a tiny model of four layers, made to show that a line works.",
    "What can you do?": (
        "I can add, subtract, compare and sort small numbers, repeat what you say, find a key "
        "phrase in a long text, write small JSON objects and Python functions, make lists and "
        "tables, and tell stories about animals."
    ),
    "How are you?": "All four ranks are well, thank you.",
    "Thank you!": "You are welcome.",
    "Goodbye!": "Goodbye!",
    "Count the ranks.": "Rank 0, rank 1, rank 2 and rank 3: that makes four ranks.",
    "How many ranks are there?": "There are four ranks.",
    "What is the capital of France?": "Paris",
    "What is the capital of Italy?": "Rome",
    "What is the capital of Norway?": "Oslo",
    "What is the capital of Austria?": "Vienna",
    "What is the capital of Portugal?": "Lisbon",
    "What is the capital of Greece?": "Athens",
    "What is the capital of Ireland?": "Dublin",
    "What is the capital of Germany?": "Berlin",
    "What is the capital of Spain?": "Madrid",
    "How many days does a week have?": "7",
    "How many months does a year have?": "12",
    "How many legs does a spider have?": "8",
    "What colour is the sky?": "blue",
    "What colour is grass?": "green",
    "What colour is snow?": "white",
}


def small_talk(random: Random, split: Split) -> Conversation:
    """Ask one of the questions above, or what comes next in a known order.

    There is nothing to hold out: both splits are the same questions.
    """
    if random.random() < 0.7:
        question = random.choice(sorted(TALK))
        return asked(question, TALK[question])
    kind = random.choice(("days of the week", "months", "planets"))
    place = random.randrange(len(KINDS[kind]) - 1)
    return asked(f"What comes after {KINDS[kind][place]}?", KINDS[kind][place + 1])
