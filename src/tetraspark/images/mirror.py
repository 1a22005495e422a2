"""Where a file is downloaded from: its own URL or a mirror, and how to show either."""

from urllib.parse import urlsplit

from tetraspark.errors import Problem, UsageError


def mirrored(url: str, mirror: str | None) -> str:
    """Return where a mirror has a file: `MIRROR/HOST/PATH`, as `wget --force-directories` lays out.

    Without a mirror, the URL itself. Raises UsageError for a mirror that is no plain URL.
    """
    if mirror is None:
        return url
    wanted = "http://HOST/FOLDER or https://HOST/FOLDER"
    try:
        parts = urlsplit(mirror)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or brackets that do not match
        raise UsageError(Problem("--mirror", "not a URL", wanted)) from None
    if parts.username or parts.password or parts.query:
        seen, fix = "a mirror with credentials in it", "put them in ~/.netrc, which is read"
        raise UsageError(Problem("--mirror", seen, f"{wanted}, without credentials", fix))
    if not good:
        fix = "for files on this machine: --from FOLDER"
        raise UsageError(Problem("--mirror", repr(mirror), wanted, fix))
    own = urlsplit(url)
    return f"{mirror.rstrip('/')}/{own.hostname}{own.path}"


def shown(url: str) -> str:
    """Return a URL as messages have it: no credentials, and no query, which may sign a request."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
