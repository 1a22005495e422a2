"""The field types of the sources manifest: what becomes a path, a URL or a word of a Dockerfile."""

import re
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator

from tetraspark.images.mirror import address_fault
from tetraspark.site.section import refusal


def _pattern(pattern: str, what: str, fix: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise refusal(f"{text[:100]!r}", what, fix)
        return text

    return AfterValidator(check)


def _url(text: str) -> str:
    wanted = "https://HOST/…/FILE, of letters, digits and . _ + - alone"
    fault = address_fault(text)
    if fault:
        raise refusal(f"URL: {fault}", wanted, "correct it")
    parts = urlsplit(text)
    if "@" in parts.netloc or "?" in text or "#" in text:
        wanted = "a URL without credentials, query or fragment: it is public"
        raise refusal(f"URL of {parts.hostname} with more in it", wanted, "shorten it")
    # The name becomes a path of the build context and a word of the Dockerfile.
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", file_name(text))
    if parts.scheme != "https" or not plain or not re.fullmatch(r"[\w./+%~-]*", parts.path):
        raise refusal(f"URL {text!r}", wanted, "correct it")
    return text


def file_name(url: str) -> str:
    """Return the last part of a URL's path."""
    return unquote(urlsplit(url).path.rsplit("/", 1)[-1])


Sha256 = Annotated[
    str, _pattern(r"[0-9a-f]{64}", "a sha256: 64 lower-case hex digits", "sha256sum FILE")
]
Digest = Annotated[
    str,
    _pattern(
        r"sha256:[0-9a-f]{64}",
        "`sha256:` and 64 hex digits",
        "docker buildx imagetools inspect REFERENCE",
    ),
]
Commit = Annotated[
    str, _pattern(r"[0-9a-f]{40}", "a whole commit: 40 hex digits", "git rev-parse REF")
]
Word = Annotated[
    str, _pattern(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "a-z, 0-9, `-` and `.`", "rename it")
]
Reference = Annotated[
    str,
    _pattern(
        r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?",
        "HOST/NAME:TAG, as `FROM` takes it",
        "the name alone: the digest has its own key",
    ),
]
Line = Annotated[
    str, _pattern(r"[^\x00-\x1f\x7f-\x9f]+", "one line of plain text", "remove the characters")
]
Url = Annotated[str, AfterValidator(_url)]
