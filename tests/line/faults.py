"""A fault in the middle of a request, and what the ranks that survive it say."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.serving import Command
from tetraspark.errors import RunError
from tetraspark.line.api import Answer, Api

CAUSE = "root cause: "


def error_of_a_request(api: Api, fault: Callable[[], object]) -> tuple[float, RunError]:
    """Break something in mid-request; return the seconds until the request ended, and its error."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(_request, api)
        time.sleep(2.0)
        assert not asked.done(), "the request ended before the fault"
        fault()
        started = time.monotonic()
        error = asked.exception(timeout=60)
    assert isinstance(error, RunError)
    return time.monotonic() - started, error


def _request(api: Api) -> Answer:
    return api.chat("Count to a thousand.", 1500, 120)


def survivors_words(line: Command, dead: int) -> dict[int, str]:
    """Return the first complaint of each other rank's collectives."""
    words = {}
    for rank in range(4):
        text = line.run("logs", str(rank), "-n", "9999").stdout
        found = [one for one in text.splitlines() if "CollectiveError: " in one]
        if found and rank != dead:
            words[rank] = found[0]
    return words


def roots(words: dict[int, str]) -> set[str]:
    """Return the causes that the ranks name."""
    return {text.split(CAUSE)[1] for text in words.values()}
