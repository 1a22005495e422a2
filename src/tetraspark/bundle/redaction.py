"""Secrets taken out of texts: by value where they are known, by form where they are not."""

import re
from collections.abc import Iterable, Mapping

from tetraspark.bundle.encodings import SHORTEST, encodings
from tetraspark.bundle.source import Missing
from tetraspark.errors import UsageError
from tetraspark.site.key_file import key_file_of
from tetraspark.site.load import LoadedSite
from tetraspark.site.secret import hide, names_secret
from tetraspark.site.source import read_bytes

HIDDEN = "[hidden]"

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|x-api-key|x-auth-token|(?:set-)?cookie)"
    r"(\\?[\"']?\s*[:=,]\s*\\?[\"']?)(?:(?:bearer|basic|token|digest)\s+)?[^\s\"'\\,][^\"'\\\r\n]*"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+(?=[a-z._~+/=-]*[\d=])[a-z0-9._~+/=-]{6,}")
_NAME = re.compile(r"-{0,2}[A-Za-z_][A-Za-z0-9_.-]*")
# Between a name and its value: `=`, `:`, or in a list of words a comma; quotes on either side.
_BETWEEN = re.compile(r"(?P<quote>\\?[\"']?)(?P<mark>\s*[=:,]\s*|[ \t]+)")
_VALUE = re.compile(
    r"(?P<escaped>\\[\"'])(?:(?!\\[\"']).)*"
    r"|(?P<double>\")(?:[^\"\\\n]|\\.)*"
    r"|(?P<single>')(?:[^'\\\n]|\\.)*"
    r"|[^\s\"']+"
)
_AROUND = ",;)]}"
"""Punctuation that may follow a value, and does not count as a part of it."""
_COUNT = re.compile(r"\d{1,9}(?:\.\d{1,9})?%?")
_NOTHING = ("", HIDDEN.rstrip(_AROUND), "None", "null", "True", "False", "true", "false")


class Redactor:
    """Takes secrets out of texts; `values` are known ones, `unread` a key file that is not."""

    def __init__(self, values: Iterable[str] = (), unread: Missing | None = None) -> None:
        self.unread = unread
        forms = {form for value in values for form in (value, *encodings(value)) if form}
        longest = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest))) if forms else None

    def clean(self, text: str) -> str:
        """Return a text without known secrets, and without what has the form of one."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        text = _KEY_BLOCK.sub(HIDDEN, text)
        text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
        text = _BEARER.sub(rf"\1 {HIDDEN}", text)
        return hide(_without_values(text))


def _without_values(text: str) -> str:
    """Hide what stands behind the name of a secret."""
    kept, done = [], 0
    for name in _NAME.finditer(text):
        if name.start() >= done and names_secret(name[0]):
            span = _value_span(text, name)
            if span is not None:
                kept += [text[done : span[0]], HIDDEN]
                done = span[1]
    return "".join((*kept, text[done:]))


def _value_span(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value of a secret is, without its quotes, or None where there is none.

    Behind a blank or a comma only a flag has one: `--api-key VALUE`. A log's `#token: 15` counts.
    """
    between = _BETWEEN.match(text, name.end())
    value = between and _VALUE.match(text, between.end())
    if between is None or value is None:
        return None
    if not (name[0].startswith("--") or any(c in between["mark"] for c in "=:")):
        return None
    start = value.end(value.lastgroup) if value.lastgroup else value.start()
    found = text[start : value.end()].rstrip(_AROUND)
    counts = name[0].lower().endswith("token") and ":" in between["mark"]
    if found in _NOTHING or (counts and _COUNT.fullmatch(found)):
        return None
    return start, start + len(found)


def known_secrets(key: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets this program can know, of the key file's text and its own environment."""
    found = [
        value for name, value in environ.items() if names_secret(name) and len(value) >= SHORTEST
    ]
    found += [key.strip(), *key.split()]
    return tuple(dict.fromkeys(one for one in found if one))


def redactor_of(loaded: LoadedSite, environ: Mapping[str, str]) -> Redactor:
    """Return the redactor of a line's texts, which knows its key and the environment's secrets.

    A key file is read whatever its mode: a key that others can read is still not to be sent on.
    """
    file, key, unread = key_file_of(loaded), "", None
    if file is not None:
        try:
            key = read_bytes(file).decode("utf-8", "replace")
        except UsageError as error:
            why = "so a key that a text repeats is not known: look before you send"
            unread = Missing(str(file), f"{error.problems[0].seen}, {why}")
    return Redactor(known_secrets(key, environ), unread)
