"""Reads unit files back by systemd's rules: sections, values, words, specifiers."""

import re

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')


def read_unit(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the values of each key, in order, by section. Raises ValueError for other lines."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] | None = None
    for line in text.splitlines():
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = found.setdefault(line[1:-1], {})
            continue
        name, equals, value = line.partition("=")
        if not equals or section is None or line.endswith("\\") or not name.isalpha():
            raise ValueError(f"no assignment: {line!r}")
        section.setdefault(name, []).append(value)
    return found


def words(value: str) -> list[str]:
    """Return the words of a list, unquoted, with their specifiers resolved."""
    found, at = [], 0
    while at < len(value):
        if value[at].isspace():
            at += 1
            continue
        match = _WORD.match(value, at)
        if match is None or (match.end() < len(value) and not value[match.end()].isspace()):
            raise ValueError(f"no word at {at}: {value!r}")
        quoted = match[1]
        text = match[2] if quoted is None else _ESCAPE.sub(_unescape, quoted)
        found.append(resolved(text))
        at = match.end()
    return found


def resolved(text: str) -> str:
    """Return a value without its specifiers. Raises ValueError for any but `%%`."""
    if re.search("%(?!%)", text.replace("%%", "")):
        raise ValueError(f"a specifier: {text!r}")
    return text.replace("%%", "%")


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else found[2]
