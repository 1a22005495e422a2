"""What bash would hold after an assignment, or why only a shell could tell."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tetraspark.site.secret import names_secret
from tetraspark.site.shell_word import Literal, Piece, Reference, Unknown

UNSET = "unset again here"

_HOME = "`$HOME` that is not the beginning of a path"


@dataclass(frozen=True)
class Assignment:
    """One variable: its text as bash would hold it, or None and why that cannot be known.

    `secret` is also true for text that came from a secret variable.
    """

    name: str
    line: int
    value: str | None
    why: str = ""
    secret: bool = False


Known = Mapping[str, Assignment]


@dataclass(frozen=True)
class Word:
    """A word as written; a `NAME=value` one also has its name and the value's pieces."""

    raw: str
    name: str = ""
    append: bool = False
    pieces: tuple[Piece, ...] = ()


def evaluate(word: Word, line: int, known: Known) -> Assignment:
    """Return a `NAME=value` word as an assignment; `known` has the variables before it."""
    pieces = word.pieces
    if word.append and word.name in known:
        pieces = (Reference(word.name), *pieces)
    value, why, from_home = "", "", False
    secret = names_secret(word.name)
    for piece in pieces:
        for text, reason, hidden in _resolve((piece,), known):
            home = text.startswith("~") and not isinstance(piece, Literal)
            why = why or reason or (_HOME if home and value else "")
            from_home = from_home or home
            value += text
            secret = secret or hidden
    if from_home and not re.match(r"~(/|$)", value):
        why = why or _HOME
    return Assignment(word.name, line, None if why else value, why, secret)


def _resolve(pieces: tuple[Piece, ...], known: Known) -> Iterator[tuple[str, str, bool]]:
    """Yield each piece's text, why it has none, and whether it is a secret's."""
    for piece in pieces:
        if isinstance(piece, Literal):
            yield piece.text, "", False
        elif isinstance(piece, Unknown):
            yield "", piece.why, False
        else:
            yield from _referenced(piece, known)


def _referenced(piece: Reference, variables: Known) -> Iterator[tuple[str, str, bool]]:
    known = variables.get(piece.name)
    if known is not None and known.value is None and known.why != UNSET:
        yield "", f"`${piece.name}` is not known: {known.why}", known.secret
    elif known is not None and known.value is not None and (known.value or not piece.empty_counts):
        yield known.value, "", known.secret
    elif piece.name == "HOME" and known is None:
        yield "~", "", False
    elif piece.default is not None:
        yield from _resolve(piece.default, variables)
    else:
        yield "", f"`${piece.name}` is not set earlier in this file", False
