"""A profile of the bash launchers as data: assignments and the rest, nothing ever executed."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from tetraspark.errors import Problem
from tetraspark.site.secret import redact
from tetraspark.site.shell_value import UNSET, Assignment, Word, evaluate
from tetraspark.site.shell_word import (
    OPERATORS,
    Cursor,
    Piece,
    UnendedQuoteError,
    Unknown,
    read_word,
    skip_brackets,
)
from tetraspark.site.source import LARGEST_FILE, check_size, decode_source

__all__ = ["LARGEST_FILE", "EnvFile", "Statement", "parse_envfile"]

_LARGEST_SUM = 4 * LARGEST_FILE
_MOST_UNENDED = 10
_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[^\]\n]*\]\+?=")
# bash also expands ~name, ~+, ~- and ~1, and a ~ behind each colon
_OTHER_HOME = re.compile(r"^(\\\n)*~[^/]|:(\\\n)*~")
_HEREDOC = re.compile(r"<<(-?)\s*[\"']?([A-Za-z0-9_]+)[\"']?")
_OPENERS = ("if", "for", "while", "until", "case", "select", "function", "{")
_CLOSERS = ("fi", "done", "esac", "}")
_ARRAY = "a bash array: write its words in one quoted string"
_BLOCK = "inside a block of shell code: whether it takes effect only a shell could tell"


@dataclass(frozen=True)
class Statement:
    """Anything that is not an assignment: its first line (secrets hidden) and why it stays."""

    line: int
    text: str
    why: str


@dataclass(frozen=True)
class EnvFile:
    """All assignments in file order, all other statements, and oddities of the bytes."""

    path: Path
    assignments: tuple[Assignment, ...]
    statements: tuple[Statement, ...]
    warnings: tuple[Problem, ...] = ()


def parse_envfile(path: Path, data: bytes) -> EnvFile:
    """Read a profile; raises UsageError only for bytes that are not text, or too many."""
    check_size(path, len(data))
    source = decode_source(path, data)
    reader = _Reader(source.text)
    reader.run()
    return EnvFile(path, tuple(reader.assignments), tuple(reader.statements), source.warnings)


class _Reader:
    def __init__(self, text: str) -> None:
        self.cursor = Cursor(text)
        self.assignments: list[Assignment] = []
        self.statements: list[Statement] = []
        self.known: dict[str, Assignment] = {}
        self.depth = 0
        self.unended = 0
        self.size = 0
        self.counted = (0, 1)

    def run(self) -> None:
        while self._skip_to_statement():
            start, inside = self.cursor.at, self.depth > 0
            try:
                words, why = self._words()
            except UnendedQuoteError as error:
                words, why = [], f"`{error}` without its other half: bash would refuse the file"
                self.cursor.at = start
                self._skip_line()
                self.unended += 1
            self._statement(start, words, why, inside=inside)
            if self.unended == _MOST_UNENDED:
                self._leave_the_rest()

    def _leave_the_rest(self) -> None:
        # each unended quote is looked for up to the end of the file: many would take forever
        if self._skip_to_statement():
            start, self.cursor.at = self.cursor.at, len(self.cursor.text)
            why = f"the rest of the file is not read: {_MOST_UNENDED} quotes before have no end"
            self._statement(start, [], why, inside=False)

    def _skip_to_statement(self) -> bool:
        cursor = self.cursor
        while char := cursor.peek():
            if char == "#":
                self._skip_line()
            elif char in " \t\n;":
                cursor.at += 1
            elif cursor.peek(2) == "\\\n":
                cursor.at += 2
            else:
                return True
        return False

    def _skip_line(self) -> None:
        end = self.cursor.text.find("\n", self.cursor.at)
        self.cursor.at = len(self.cursor.text) if end < 0 else end

    def _words(self) -> tuple[list[Word], str]:
        """Read the words of one statement, and why it is shell code if an operator says so."""
        cursor = self.cursor
        words: list[Word] = []
        while char := cursor.peek():
            if char in "\n;":
                break
            if char in " \t":
                cursor.at += 1
            elif char == "#":
                self._skip_line()
            elif cursor.peek(2) == "\\\n":
                cursor.at += 2
            elif char in OPERATORS:
                return words, self._operator()
            else:
                words.append(self._word())
        return words, ""

    def _word(self) -> Word:
        cursor = self.cursor
        start = cursor.at
        match = _ASSIGN.match(cursor.text, start)
        if match is None:
            read_word(cursor)
            return Word(cursor.text[start : cursor.at])
        cursor.at = match.end()
        pieces: tuple[Piece, ...]
        if cursor.peek() == "(":
            skip_brackets(cursor)
            pieces = (Unknown(_ARRAY),)
        elif cursor.peek() == "[":
            read_word(cursor)
            pieces = (Unknown("a list in brackets, which bash takes for plain text"),)
        else:
            pieces = read_word(cursor)
            if _OTHER_HOME.search(cursor.text[match.end() : cursor.at]):
                pieces = (Unknown("a `~` that a shell expands to something else than this home"),)
        raw = cursor.text[start : cursor.at]
        return Word(raw, match.group(1), match.group(2) == "+", pieces)

    def _operator(self) -> str:
        start = self.cursor.at
        self._skip_line()
        rest = self.cursor.text[start : self.cursor.at]
        if rest.startswith("()"):
            self.depth += max(0, rest.count("{") - rest.count("}"))
            return "a shell function"
        if (here := _HEREDOC.search(rest)) is not None and "<<<" not in rest:
            self._skip_heredoc(here.group(2), tabs=here.group(1) == "-")
        return "shell code; it is never run"

    def _skip_heredoc(self, end: str, *, tabs: bool) -> None:
        while self.cursor.peek():
            self.cursor.at += 1
            start = self.cursor.at
            self._skip_line()
            row = self.cursor.text[start : self.cursor.at]
            if (row.lstrip("\t") if tabs else row) == end:
                return

    def _statement(self, start: int, words: list[Word], why: str, *, inside: bool) -> None:
        first = words[0].raw if words else ""
        self.depth += first in _OPENERS
        self.depth -= first in _CLOSERS and self.depth > 0
        if not why and not inside and self.depth == 0:
            why = self._take(words, self._line(start))
        elif not why or inside:
            why = _BLOCK
        if why:
            raw = self.cursor.text[start : self.cursor.at].strip()
            text = raw.split("\n", 1)[0][:400].rstrip("\\ ")
            shown = redact(text)[:120] + (" …" if "\n" in raw else "")
            self.statements.append(Statement(self._line(start), shown, why))

    def _line(self, at: int) -> int:
        before, line = self.counted
        self.counted = (at, line + self.cursor.text.count("\n", before, at))
        return self.counted[1]

    def _take(self, words: list[Word], line: int) -> str:
        """Record a statement's assignments, or return why it has none."""
        first, rest = words[0], words[1:]
        if all(word.name for word in words):
            return self._assign(words, line)
        if first.raw == "export" and rest and all(_exportable(word) for word in rest):
            new = [word.raw for word in rest if not word.name and word.raw not in self.known]
            self._assign([word for word in rest if word.name], line)
            return f"no value in this file for {', '.join(new)}" if new else ""
        if first.raw == "unset" and rest and all(word.raw.isidentifier() for word in rest):
            for word in rest:
                self._record(Assignment(word.raw, line, None, UNSET))
            return ""
        return _not_assignment(words)

    def _assign(self, words: list[Word], line: int) -> str:
        for word in words:
            self._record(evaluate(word, line, self.known))
        return ""

    def _record(self, assignment: Assignment) -> None:
        self.size += len(assignment.value or "")
        if self.size > _LARGEST_SUM:
            why = f"all values of the file together are longer than {_LARGEST_SUM} characters"
            assignment = replace(assignment, value=None, why=assignment.why or why)
        self.assignments.append(assignment)
        self.known[assignment.name] = assignment


def _exportable(word: Word) -> bool:
    return bool(word.name) or word.raw.isidentifier()


def _not_assignment(words: list[Word]) -> str:
    first = words[0]
    if first.name:
        # the word itself is not repeated: it is often the value of a secret
        what = f"bash would run a later word as a command, with {first.name} set for it alone"
        return f"{what}; put the whole value in quotes"
    if _ELEMENT.match(first.raw):
        return _ARRAY
    if len(words) > 1 and words[1].raw.startswith("="):
        return f"bash would run `{first.raw}`; write NAME=value without blanks"
    if first.raw in ("source", "."):
        return "another file; import that one by itself"
    return "a command; it is never run"
