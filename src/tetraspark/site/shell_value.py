"""What bash would hold after an assignment, or why only a shell could tell."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tetraspark.site.secret import names_secret
from tetraspark.site.shell_word import QUOTED_HOME, Literal, Piece, Reference, Unknown

UNSET = "unset again here"
# Linux gives no process a longer variable (MAX_ARG_STRLEN)
LARGEST_VALUE = 128 * 1024

_PATH_OF_HOME = re.compile(r"~(/|\Z)")
_BARE_HOME = re.compile(r"[^=]*=(\\\n)*~")
_UNKNOWN = " is not known: "
_LONG = f"longer than {LARGEST_VALUE} characters, which no process can be given"
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
    parts: list[str] = []
    size, why, from_home = 0, "", False
    secret = names_secret(word.name)
    for piece in pieces:
        for text, reason, hidden in _resolve((piece,), known):
            home = not isinstance(piece, Literal) and _PATH_OF_HOME.match(text) is not None
            why = why or reason or (_HOME if home and size else "")
            size += len(text)
            if size > LARGEST_VALUE:
                why = why or _LONG
            else:
                parts.append(text)
            from_home = from_home or home
            secret = secret or hidden
    value = "".join(parts)
    why = why or _home_fault(word, value, from_home=from_home)
    return Assignment(word.name, line, None if why else value, why, secret)


def _home_fault(word: Word, value: str, *, from_home: bool) -> str:
    """Return why a text is no path of the home folder though it looks like one, or nothing."""
    is_home = _PATH_OF_HOME.match(value) is not None
    if from_home and not is_home:
        return _HOME
    quoted = is_home and not from_home and not _BARE_HOME.match(word.raw)
    return QUOTED_HOME if quoted else ""


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
        # the first reason alone: a chain of variables would repeat it at each of its links
        root = known.why.rpartition(_UNKNOWN)[2]
        yield "", f"`${piece.name[:60]}`{_UNKNOWN}{root}", known.secret
    elif known is not None and known.value is not None and (known.value or not piece.empty_counts):
        yield known.value, "", known.secret
    elif piece.name == "HOME" and known is None:
        yield "~", "", False
    elif piece.default is not None:
        yield from _resolve(piece.default, variables)
    else:
        yield "", f"`${piece.name[:60]}` is not set earlier in this file", False
