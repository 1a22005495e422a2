"""One word of a bash file, read without running anything: its pieces, quotes resolved."""

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)(.*))?", re.DOTALL)
_SUBSTITUTION = "command substitution `{}` is never run"
OPERATORS = "&|<>()"


@dataclass(frozen=True)
class Literal:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True)
class Reference:
    """`$NAME`, or `${NAME:-default}` with the pieces of its default."""

    name: str
    default: "tuple[Piece, ...] | None" = None
    empty_counts: bool = False


@dataclass(frozen=True)
class Unknown:
    """Something only a shell could turn into text."""

    why: str


Piece = Literal | Reference | Unknown


class UnendedQuoteError(ValueError):
    """A quote, brace or parenthesis has no end in the file."""


@dataclass
class Cursor:
    """A place in a text, moved forward by the readers below."""

    text: str
    at: int = 0

    def peek(self, length: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at : self.at + length]

    def take_through(self, end: str, start: int) -> str:
        """Return the text from `start` to `end`, and move behind it."""
        stop = self.text.find(end, start)
        if stop < 0:
            raise UnendedQuoteError(end)
        self.at = stop + len(end)
        return self.text[start:stop]


def read_word(cursor: Cursor) -> tuple[Piece, ...]:
    """Read up to a blank, a newline, `;` or an operator outside quotes."""
    pieces: list[Piece] = []
    while (char := cursor.peek()) and char not in " \t\n;" + OPERATORS:
        if char == "'":
            pieces.append(Literal(cursor.take_through("'", cursor.at + 1)))
        elif char == '"':
            cursor.at += 1
            pieces += _double_quoted(cursor)
        elif char == "\\":
            pieces.append(Literal(_escaped(cursor)))
        elif char in "$`":
            pieces += _expansion(cursor, quoted=False)
        else:
            pieces.append(Literal(char))
            cursor.at += 1
    return tuple(pieces)


def skip_parentheses(cursor: Cursor) -> None:
    """Move behind the parenthesis that closes the one at the cursor, quotes respected."""
    depth = 0
    while char := cursor.peek():
        if char == "'":
            cursor.take_through("'", cursor.at + 1)
            continue
        if char == '"':
            cursor.at += 1
            _double_quoted(cursor)
            continue
        cursor.at += 2 if char == "\\" else 1
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return
    raise UnendedQuoteError(")")


def _escaped(cursor: Cursor) -> str:
    pair = cursor.peek(2)
    cursor.at += len(pair)
    return "" if pair == "\\\n" else pair[1:]


def _double_quoted(cursor: Cursor) -> list[Piece]:
    pieces: list[Piece] = []
    while char := cursor.peek():
        if char == '"':
            cursor.at += 1
            return pieces
        if char == "\\" and cursor.peek(2)[1:] in '$`"\\\n':
            pieces.append(Literal(_escaped(cursor)))
        elif char in "$`":
            pieces += _expansion(cursor, quoted=True)
        else:
            pieces.append(Literal(char))
            cursor.at += 1
    raise UnendedQuoteError('"')


def _expansion(cursor: Cursor, *, quoted: bool) -> list[Piece]:
    start = cursor.at
    if cursor.peek() == "`":
        body = cursor.take_through("`", start + 1)
        return [Unknown(_SUBSTITUTION.format(f"`{body}`"[:60]))]
    cursor.at += 1
    following = cursor.peek()
    if following == "(":
        arithmetic = cursor.peek(2) == "(("
        skip_parentheses(cursor)
        text = cursor.text[start : cursor.at][:60]
        why = f"arithmetic `{text}` is never evaluated"
        return [Unknown(why if arithmetic else _SUBSTITUTION.format(text))]
    if following == "{":
        return [_braced(cursor)]
    if following == "'" and not quoted:
        cursor.at += 1
        while (char := cursor.peek()) and char != "'":
            cursor.at += 2 if char == "\\" else 1
        cursor.take_through("'", cursor.at)
        return [Unknown("quoting with $'…' is not read")]
    if following == '"' and not quoted:
        cursor.at += 1
        return _double_quoted(cursor)
    if (match := _NAME.match(cursor.text, cursor.at)) is not None:
        cursor.at = match.end()
        return [Reference(match.group())]
    if following and following in "0123456789@*#?$!-":
        cursor.at += 1
        return [Unknown(f"`${following}` is a parameter of the running shell")]
    return [Literal("$")]


def _braced(cursor: Cursor) -> Piece:
    start = cursor.at
    depth = 0
    while char := cursor.peek():
        cursor.at += 2 if char == "\\" else 1
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return _reference(cursor.text[start + 1 : cursor.at - 1])
    raise UnendedQuoteError("}")


def _reference(body: str) -> Piece:
    match = _BRACED.fullmatch(body)
    if match is None:
        return Unknown(f"`${{{body[:60]}}}` needs a shell")
    name, operator, default = match.groups()
    if operator is None:
        return Reference(name)
    try:
        pieces = _double_quoted(Cursor(default.replace('"', "") + '"'))
    except UnendedQuoteError:
        return Unknown(f"`${{{body[:60]}}}` needs a shell")
    return Reference(name, tuple(pieces), empty_counts=operator == ":-")
