"""The line of every key in a TOML document, which tomllib does not tell."""

import re
from dataclasses import dataclass, field

from tetraspark.site.keypath import KeyPath

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")
_BLANK = re.compile(r"[ \t]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


@dataclass(frozen=True)
class Repeat:
    """A key written twice: invalid TOML, which tomllib reports without naming the first."""

    path: KeyPath
    first: int
    again: int


@dataclass
class KeyLines:
    """`lines` maps each key path to its 1-based line; array elements count as keys too."""

    lines: dict[KeyPath, int] = field(default_factory=dict)
    repeats: list[Repeat] = field(default_factory=list)


def key_lines(text: str) -> KeyLines:
    """Map every key of valid TOML (LF line ends) to its line; ValueError where it cannot follow."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.table: KeyPath = ()
        self.arrays: dict[KeyPath, int] = {}
        self.found = KeyLines()
        self.defined: dict[KeyPath, int] = {}

    def run(self) -> KeyLines:
        while True:
            self._skip_space(newlines=True)
            if self.at >= len(self.text):
                return self.found
            if self.text[self.at] == "[":
                self._header()
            else:
                self._pair(self.table)
            self._skip_space(newlines=False)
            if self.at < len(self.text) and self.text[self.at] != "\n":
                raise ValueError(f"line {self.line}: text after a value")

    # cursor

    def _peek(self) -> str:
        if self.at >= len(self.text):
            raise ValueError(f"line {self.line}: the document ends inside a value")
        return self.text[self.at]

    def _take(self, wanted: str) -> None:
        if not self.text.startswith(wanted, self.at):
            raise ValueError(f"line {self.line}: {wanted!r} expected")
        self.at += len(wanted)

    def _advance_to(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def _skip_space(self, *, newlines: bool) -> None:
        while True:
            match = _BLANK.match(self.text, self.at)
            self.at = match.end() if match else self.at
            rest = self.text[self.at : self.at + 1]
            if rest == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif rest == "\n" and newlines:
                self._advance_to(self.at + 1)
            else:
                return

    # keys

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key; each part comes with its line."""
        parts = []
        while True:
            self._skip_space(newlines=False)
            parts.append((self._key_part(), self.line))
            self._skip_space(newlines=False)
            if self._peek() != ".":
                return parts
            self.at += 1

    def _key_part(self) -> str:
        if self._peek() in "\"'":
            start = self.at
            self._string()
            body = self.text[start + 1 : self.at - 1]
            return _unescape(body) if self.text[start] == '"' else body
        match = _BARE.match(self.text, self.at)
        if match is None:
            raise ValueError(f"line {self.line}: a key expected")
        self.at = match.end()
        return match.group()

    def _header(self) -> None:
        line = self.line
        array = self.text.startswith("[[", self.at)
        self._take("[[" if array else "[")
        parts = self._key()
        self._take("]]" if array else "]")
        path: KeyPath = ()
        for part, _ in parts[:-1]:
            path = self._enter((*path, part), line)
        last = (*path, parts[-1][0])
        if not array:
            self._define(last, line)
            self.table = self._enter(last, line)
            return
        self.found.lines.setdefault(last, line)
        self.arrays[last] = self.arrays.get(last, -1) + 1
        self.table = (*last, self.arrays[last])
        self.found.lines[self.table] = line

    def _enter(self, path: KeyPath, line: int) -> KeyPath:
        self.found.lines.setdefault(path, line)
        return (*path, self.arrays[path]) if path in self.arrays else path

    def _define(self, path: KeyPath, line: int) -> None:
        if path in self.defined:
            self.found.repeats.append(Repeat(path, self.defined[path], line))
        self.defined.setdefault(path, line)
        self.found.lines.setdefault(path, line)

    # values

    def _pair(self, table: KeyPath) -> None:
        path = table
        parts = self._key()
        for part, line in parts:
            path = (*path, part)
            self.found.lines.setdefault(path, line)
        self._define(path, parts[-1][1])
        self._take("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip_space(newlines=False)
        first = self._peek()
        if first in "\"'":
            self._string()
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            match = _SCALAR.match(self.text, self.at)
            if match is None:
                raise ValueError(f"line {self.line}: a value expected")
            self.at = match.end()

    def _array(self, path: KeyPath) -> None:
        self._take("[")
        for index in range(len(self.text)):
            self._skip_space(newlines=True)
            if self._peek() == "]":
                break
            self.found.lines[(*path, index)] = self.line
            self._value((*path, index))
            self._skip_space(newlines=True)
            if self._peek() != "]":
                self._take(",")
        self._take("]")

    def _inline_table(self, path: KeyPath) -> None:
        self._take("{")
        self._skip_space(newlines=True)
        while self._peek() != "}":
            self._pair(path)
            self._skip_space(newlines=True)
            if self._peek() != "}":
                self._take(",")
                self._skip_space(newlines=True)
        self._take("}")

    def _string(self) -> None:
        quote = self._peek()
        if self.text.startswith(quote * 3, self.at):
            self._long_string(quote)
            return
        end = self.at + 1
        while True:
            if end >= len(self.text) or self.text[end] == "\n":
                raise ValueError(f"line {self.line}: a string without its closing quote")
            if self.text[end] == quote:
                break
            end += 2 if quote == '"' and self.text[end] == "\\" else 1
        self._advance_to(end + 1)

    def _long_string(self, quote: str) -> None:
        end = self.at + 3
        while not self.text.startswith(quote * 3, end):
            if end >= len(self.text):
                raise ValueError(f"line {self.line}: a string without its closing quotes")
            end += 2 if quote == '"' and self.text[end] == "\\" else 1
        end += 3
        # one or two quotes may stand directly before the closing three
        extra = 0
        while extra < 2 and self.text.startswith(quote, end):
            end += 1
            extra += 1
        self._advance_to(end)


def _unescape(body: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1) or match.group(2)
        return chr(int(code, 16)) if code else _SHORT.get(match.group(3), match.group(3))

    return _ESCAPE.sub(one, body)
