"""Words and paths by the rules of systemd's unit files (systemd.syntax(7), systemd.unit(5)). Pure.

In every value `%` begins a specifier. In lists of words quotes group and a backslash escapes; in
command lines `$` would begin a variable, which the prefix `:` of the program turns off.
"""

import re

from tetraspark.errors import Problem, UsageError

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_ESCAPED = re.compile(r'[\\"\x00-\x1f\x7f]')


def word(text: str) -> str:
    """Return a text as one word of a list: quoted where it must be.

    Raises UsageError for what no unit file can hold.
    """
    _require_text(text)
    if _PLAIN.fullmatch(text):
        return text
    escaped = _ESCAPED.sub(_escape, text).replace("%", "%%")
    return f'"{escaped}"'


def command(words: tuple[str, ...]) -> str:
    """Return a command line, whose words may hold `$`. Raises UsageError as `word` does."""
    program, *rest = words
    return " ".join((word(f":{program}"), *map(word, rest)))


def raw(text: str) -> str:
    """Return a text as a value that is taken as it stands, to the end of its line.

    Raises UsageError for one that would not come back: with a control character, blanks around
    it, or a backslash at its end, which joins lines.
    """
    _require_text(text)
    if _ESCAPED.search(text.replace("\\", "").replace('"', "")) or text != text.strip():
        raise _refused(text, "a control character, or blanks around it")
    if text.endswith("\\"):
        raise _refused(text, "a backslash at its end")
    return text.replace("%", "%%")


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character in '\\"' else f"\\x{ord(character):02x}"


def _require_text(text: str) -> None:
    if not text or "\0" in text or (not text.isprintable() and not _encodable(text)):
        raise _refused(text, "nothing, or bytes that are no text")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refused(text: str, seen: str) -> UsageError:
    wanted = "a name that a unit file can hold"
    return UsageError(Problem(repr(text), seen, wanted, "give the file or folder another name"))
