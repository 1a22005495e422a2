"""Where a file is downloaded from: its own URL or a mirror, and how to show either."""

import ipaddress
import re
from urllib.parse import urlsplit

from tetraspark.errors import Problem, UsageError
from tetraspark.site.host import host_fault


def mirrored(url: str, mirror: str | None) -> str:
    """Return where a mirror has a file: `MIRROR/HOST/PATH`, as `wget --force-directories` lays out.

    Without a mirror, the URL itself. Raises UsageError for a mirror that is no plain URL.
    """
    if mirror is None:
        return url
    wanted = "http://HOST/FOLDER or https://HOST/FOLDER"
    if "@" in mirror or "?" in mirror or "#" in mirror:
        seen, fix = "a mirror with credentials in it", "put them in ~/.netrc, which is read"
        raise UsageError(Problem("--mirror", seen, f"{wanted}, without credentials", fix))
    fault = address_fault(mirror)
    if fault:
        fix = "for files on this machine: --from FOLDER"
        raise UsageError(Problem("--mirror", fault, wanted, fix))
    own = urlsplit(url)
    return f"{mirror.rstrip('/')}/{own.hostname}{own.path}"


def address_fault(url: str) -> str:
    """Say what keeps a URL from being one of HTTP with a usable host and port, or nothing.

    The URL itself is not repeated: a part of it may be a password.
    """
    if re.search(r"[^!-~]", url):
        return "blanks or characters that are not ASCII; not a host name"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # a port out of range or no number, or brackets that do not match
        return "not a URL: its host or port cannot be read"
    if parts.scheme not in ("http", "https"):
        return "neither http:// nor https://"
    if port == 0 or not (_is_address(host) or host_fault(host) is None):
        return "not a host name, or port 0"
    return ""


def shown(url: str) -> str:
    """Return a URL as messages have it: no credentials, and no query, which may sign a request."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
