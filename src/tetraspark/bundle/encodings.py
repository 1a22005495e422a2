"""The ways a secret is written when something else carries it."""

import base64
import html
import json
import shlex
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Characters of the shortest form that is looked for: any shorter one occurs in every text."""


def encodings(secret: str) -> tuple[str, ...]:
    """Return a secret's own text and its encodings, longest first.

    JSON and repr escapes, HTML, a shell's quotes, URL quoting, hex, and base64 of either
    alphabet wherever it begins in what was encoded: `user:SECRET` shows another text than
    `SECRET` alone.
    """
    data = secret.encode()
    found = {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        html.escape(secret),
        shlex.quote(secret).removeprefix("'").removesuffix("'"),
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        "".join(f"%{byte:02X}" for byte in data),
        "".join(f"%{byte:02x}" for byte in data),
        quote(secret, safe="").replace("%", "%25"),
        data.hex(),
        data.hex().upper(),
        data.hex(":"),
    }
    for before in range(3):
        found |= _base64(data, before)
    return tuple(sorted((one for one in found if len(one) >= SHORTEST), key=len, reverse=True))


def _base64(data: bytes, before: int) -> set[str]:
    """Return what base64 makes of data behind `before` other bytes, without what those decide."""
    text = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
    first = -(-before * 8 // 6)
    last = (before + len(data)) * 8 // 6
    standard = text[first:last]
    return {standard, standard.replace("+", "-").replace("/", "_")}
