"""Which names and values must never be written to a site file, a plan, a log or a message."""

import re

_NAME = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|TOKEN$"
)
_VALUE = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[opsu]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bAKIA[A-Z0-9]{16}\b"
    # user-info, of a URL or without its scheme; not the tag of an image before its digest
    r"|(?<=://)[^/?#@\s'\"]+@"
    r"|(?<![^\s/@:'\"])[^\s/@:'\"]+:[^\s/@'\"]{1,256}@(?!sha256:)"
)
_IN_TEXT = re.compile(
    r"""(?ix) ( [\w-]{0,64} (?: api[_-]?key | access[_-]?key | private[_-]?key | password | passwd
        | passphrase | secret | credential | token ) (?![a-z]) [\w-]* ["']? [\s=:]+ ) .+ """
)


def names_secret(name: str) -> bool:
    """Say whether a variable or flag of this name holds a secret (`HF_TOKEN`, `--api-key`)."""
    return _NAME.search(name.lstrip("-").upper().replace("-", "_")) is not None


def holds_secret(value: str) -> bool:
    """Say whether a value is recognisably a credential, whatever its name is."""
    return _VALUE.search(value) is not None


def hide(text: str) -> str:
    """Return a text with every recognisable credential in it taken out."""
    return _VALUE.sub("[hidden]", text)


def redact(text: str) -> str:
    """Return one line of a file with everything after a secret's name taken out."""
    return hide(_IN_TEXT.sub(r"\1[hidden]", text))
