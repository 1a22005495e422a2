"""A text to learn from: a chat of turns, or plain prose without roles."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]
BEGIN, END, PAD = "<s>", "</s>", "<pad>"
ROLES: tuple[Role, ...] = ("system", "user", "assistant")
SPECIAL = (BEGIN, END, PAD, *(f"<|{role}|>" for role in ROLES))
# The same text as `Conversation.parts` makes; a test compares the two.
CHAT_TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True)
class Part:
    """A piece of text and whether the model learns to write it."""

    text: str
    learned: bool


@dataclass(frozen=True)
class Turn:
    """What one role says."""

    role: Role
    text: str


@dataclass(frozen=True)
class Conversation:
    """Turns in order; the last one, of the assistant, is the answer a test asks for."""

    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        if not self.turns or self.turns[-1].role != "assistant":
            raise ValueError(f"a conversation ends with the assistant's turn: {self.turns}")

    @property
    def answer(self) -> str:
        """The assistant's last words."""
        return self.turns[-1].text

    @property
    def prompt(self) -> str:
        """All before the answer, as the chat template renders it for generation."""
        texts = [part.text for part in self.parts[:-1]]
        return "".join(texts)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The text in pieces: what the assistant says, its end mark included, is learned."""
        parts = [Part(BEGIN, False)]
        for turn in self.turns:
            parts.append(Part(f"<|{turn.role}|>", False))
            answers = turn.role == "assistant"
            parts.append(Part(turn.text + (END if answers else ""), answers))
        return tuple(parts)


def asked(question: str, answer: str) -> Conversation:
    """Return the conversation of one question and its answer."""
    return Conversation((Turn("user", question), Turn("assistant", answer)))


@dataclass(frozen=True)
class Prose:
    """Text without roles, learned up to its end mark; it may lack a mark of its beginning."""

    text: str
    begins: bool = True

    @property
    def parts(self) -> tuple[Part, ...]:
        """The text in pieces."""
        return (Part(BEGIN if self.begins else "", False), Part(self.text + END, True))
