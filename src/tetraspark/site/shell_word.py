"""One word of a bash file, read without running anything: its pieces, quotes resolved."""

import re
from dataclasses import dataclass

DEEPEST = 50
OPERATORS = "&|<>()"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENING = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\}|:?-)")
_PLAIN = re.compile(r"[^ \t\n;&|<>()'\"\\$`]+")
_PLAIN_QUOTED = re.compile(r"[^\"\\$`]+")
_PLAIN_DEFAULT = re.compile(r"[^}'\"\\$`]+")
_STOP = re.compile(r"[\\'\"`$(){}]")
_CLOSERS = {"(": ")", "{": "}"}
_SUBSTITUTION = "command substitution `{}` is never run"
_DEEP = f"`${{…}}` nested more than {DEEPEST} deep is not read"
QUOTED_HOME = "a quoted `~`, which bash keeps as it is: write $HOME for the home folder"


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
    """A place in a text, moved forward by the readers below; `depth` counts open `${`."""

    text: str
    at: int = 0
    depth: int = 0

    def peek(self, length: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at : self.at + length]

    def take(self, run: re.Pattern[str]) -> str:
        """Return what the pattern matches here, or else one character, and move behind it."""
        match = run.match(self.text, self.at)
        start, self.at = self.at, match.end() if match else self.at + 1
        return self.text[start : self.at]

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
            pieces.append(Literal(cursor.take(_PLAIN)))
    return tuple(pieces)


def skip_brackets(cursor: Cursor) -> None:
    """Move behind the end of the `(` or `{` at the cursor, however deep it nests."""
    stack = [(_CLOSERS[cursor.peek()], False)]
    cursor.at += 1
    while match := _STOP.search(cursor.text, cursor.at):
        char, cursor.at = match.group(), match.end()
        end, quoted = stack[-1]
        if char == "\\":
            cursor.at += 1
        elif char == end:
            stack.pop()
            if not stack:
                return
        elif char == "`" or (char == "'" and not quoted):
            cursor.take_through(char, cursor.at)
        elif char == '"':
            stack.append(('"', True))
        elif char == "$" and cursor.peek() in tuple(_CLOSERS):
            # quotes around `${` reach into it, quotes around `$(` do not
            stack.append((_CLOSERS[cursor.peek()], quoted and cursor.peek() == "{"))
            cursor.at += 1
        elif char == "(" and end == ")":
            stack.append((")", False))
    raise UnendedQuoteError(stack[-1][0])


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
            pieces.append(Literal(cursor.take(_PLAIN_QUOTED)))
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
        skip_brackets(cursor)
        text = cursor.text[start : cursor.at][:60]
        why = f"arithmetic `{text}` is never evaluated"
        return [Unknown(why if arithmetic else _SUBSTITUTION.format(text))]
    if following == "{":
        return [_braced(cursor, quoted=quoted)]
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


def _braced(cursor: Cursor, *, quoted: bool) -> Piece:
    start = cursor.at
    match = _OPENING.match(cursor.text, start)
    if match is None or cursor.depth == DEEPEST:
        skip_brackets(cursor)
        text = cursor.text[start : cursor.at][:60]
        return Unknown(_DEEP if match else f"`${text}` needs a shell")
    name, operator = match.groups()
    cursor.at = match.end()
    if operator == "}":
        return Reference(name)
    cursor.depth += 1
    try:
        default = _default(cursor, quoted=quoted)
    finally:
        cursor.depth -= 1
    return Reference(name, default, empty_counts=operator == ":-")


def _default(cursor: Cursor, *, quoted: bool) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    start, inside = cursor.at, quoted
    while char := cursor.peek():
        if char == "}" and inside == quoted:
            cursor.at += 1
            return tuple(pieces)
        if char == '"':
            cursor.at += 1
            inside = not inside
        elif char in "$`":
            pieces += _expansion(cursor, quoted=quoted or inside)
        elif char == "\\" or (char == "'" and not (quoted or inside)):
            pieces.append(Unknown("quotes in the default of a `${…}`, which needs a shell"))
            _escaped(cursor) if char == "\\" else cursor.take_through(char, cursor.at + 1)
        else:
            bare = cursor.at == start and not quoted
            text = cursor.take(_PLAIN_DEFAULT)
            hidden = text.startswith("~") and not pieces and not bare
            pieces.append(Unknown(QUOTED_HOME) if hidden else Literal(text))
    raise UnendedQuoteError("}")
