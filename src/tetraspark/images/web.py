"""The client of downloads: proxies from the usual variables, passwords from ~/.netrc."""

import os
from netrc import NetrcParseError
from pathlib import Path

import httpx

from tetraspark.errors import Problem, UsageError
from tetraspark.images.mirror import address_fault

TIMEOUT = httpx.Timeout(60, connect=20)
"""Seconds: between two pieces of a body, and for a connection."""


def web_client() -> httpx.Client:
    """Return the client; passwords of a mirror come from ~/.netrc, never from a URL.

    Raises UsageError for a netrc file, proxy settings or certificates that cannot be used; none
    is shown, as the first two may hold passwords.
    """
    for variable in sorted(os.environ):
        if variable.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            _check_proxy(variable, os.environ[variable])
    auth = _netrc()
    try:
        return httpx.Client(timeout=TIMEOUT, follow_redirects=True, auth=auth)
    except OSError as error:
        variable = next((n for n in ("SSL_CERT_FILE", "SSL_CERT_DIR") if n in os.environ), "TLS")
        seen, fix = f"certificates that cannot be read: {error.strerror}", "env | grep SSL_CERT"
        raise UsageError(Problem(variable, seen, "a file of PEM certificates", fix)) from error
    except (ValueError, httpx.InvalidURL):
        fix, wanted = "env | grep -i no_proxy", "host names, separated by commas"
        raise UsageError(Problem("NO_PROXY", "no host names", wanted, fix)) from None


def _check_proxy(variable: str, text: str) -> None:
    url = text if "://" in text or not text else f"http://{text}"
    if url and address_fault(url):
        seen, fix = "a proxy that is no URL of HTTP", f"export {variable}=http://HOST:PORT"
        raise UsageError(Problem(variable, seen, "http://HOST:PORT", fix))


def _netrc() -> httpx.NetRCAuth | None:
    path = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    line, fix = "", "correct the line"
    try:
        return httpx.NetRCAuth(str(path)) if path.is_file() else None
    except NetrcParseError as error:
        line = f":{error.lineno}"
    except UnicodeDecodeError:
        fix = f"iconv -f latin1 -t utf-8 {path}"
    except OSError:
        fix = f"ls -l {path}"
    raise UsageError(Problem(f"{path}{line}", "cannot be read", "a netrc file, UTF-8", fix))
