"""Which names and values must never be written to a site file, a plan, a log or a message."""

import re

_NAME = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|TOKEN$"
)
_VALUE = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[opsu]_[A-Za-z0-9]{20,}"
    r"|://[^/@\s:]+:[^/@\s]+@"
)
_IN_TEXT = re.compile(
    r"""(?ix) ( [\w-]* (?: api[_-]?key | access[_-]?key | private[_-]?key | password | passwd
        | passphrase | secret | credential | token ) (?![a-z]) [\w-]* ["']? [\s=:]+ ) .+ """
)


def names_secret(name: str) -> bool:
    """Say whether a variable or flag of this name holds a secret (`HF_TOKEN`, `--api-key`)."""
    return _NAME.search(name.lstrip("-").upper().replace("-", "_")) is not None


def holds_secret(value: str) -> bool:
    """Say whether a value is recognisably a credential, whatever its name is."""
    return _VALUE.search(value) is not None


def redact(text: str) -> str:
    """Return one line of a file with everything after a secret's name taken out."""
    return _VALUE.sub("[hidden]", _IN_TEXT.sub(r"\1[hidden]", text))
