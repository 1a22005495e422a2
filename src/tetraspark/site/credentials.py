"""Credentials in the values of a site: one check over every text of the document."""

import re
from collections.abc import Iterator

from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.lookup import Document, walk
from tetraspark.site.secret import hide, holds_secret

# `name:password`: no login holds a colon, and behind a host's only a port may stand
_LOGINS = {
    "user": re.compile(r".*:.*"),
    **dict.fromkeys(("host", "ssh_host", "nfs_server"), re.compile(r"[^:]+:(?!\d*$)[^:]+")),
}


def credential_findings(document: Document) -> Iterator[Finding]:
    """Refuse every text that is recognisably a credential, or holds one; none is repeated."""
    for path, value in walk(document):
        if path and isinstance(path[-1], str) and holds_secret(path[-1]):
            yield secret_finding(path, f"a credential in the key `{hide(dotted(path))}`")
        elif isinstance(value, str) and is_credential(path, value):
            what = f"the value of `{path[1]}`" if path[:1] == ("env",) else f"`{dotted(path)}`"
            yield secret_finding(path, f"a credential in {what}")


def secret_finding(path: KeyPath, seen: str) -> Finding:
    """Return the refusal of a secret."""
    wanted = "no secret in a site file: it is copied into plans and receipts"
    fix = "remove it; the API key goes in a file of mode 0600 named by `api.key_file`"
    return Finding(path, seen, wanted, fix)


def is_credential(path: KeyPath, value: str) -> bool:
    """Say whether a text is recognisably a credential, or holds one, at its place in a site."""
    login = _LOGINS.get(str(path[-1])) if path[:1] != ("env",) else None
    return holds_secret(value) or (login is not None and login.fullmatch(value) is not None)
