"""A server that others can reach has a key, or the site says that it needs none."""

from collections.abc import Iterator

from tetraspark.site.finding import Finding
from tetraspark.site.host import unreachable
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, table_at

HOST: KeyPath = ("api", "host")
ALLOW: KeyPath = ("api", "allow_open")


def listens_to_others(document: Document) -> bool:
    """Say whether the API listens on more than loopback."""
    host = table_at(document, "api").get("host", "127.0.0.1")
    return isinstance(host, str) and not (unreachable(host) or "").startswith("a loopback")


def open_api(document: Document) -> Iterator[Finding]:
    """Refuse an API that is open to others by omission, and an allowance that allows nothing."""
    api = table_at(document, "api")
    allowed = api.get("allow_open")
    if listens_to_others(document):
        if "key_file" not in api and allowed is not True:
            seen = f"host = {api['host']!r} lets others in, and there is no API key"
            fix = 'set `api.key_file`, or host = "127.0.0.1", or allow_open = true'
            yield Finding(HOST, seen, "an API key where the network reaches the server", fix)
        if "key_file" in api and allowed is True:
            seen = "allow_open = true beside `key_file`"
            yield Finding(ALLOW, seen, "a server with a key or an open one", "remove one of them")
    elif allowed is True:
        wanted = "it only where others can reach the server"
        yield Finding(ALLOW, "allow_open = true on loopback", wanted, "remove it, or set `host`")
