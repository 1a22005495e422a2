"""Lists of token counts on the command line: 4096, 4k, 1M."""

import re

from tetraspark.errors import Problem, UsageError

FACTORS = {"": 1, "k": 1024, "M": 1024 * 1024}
MOST = 1_048_576
COUNT = re.compile(r"(\d{1,7})([kM]?)")


def lengths_of(text: str) -> tuple[int, ...]:
    """Return the counts of a list such as `512,4k,1M`. Raises UsageError."""
    return tuple(dict.fromkeys(length_of(part, "--lengths") for part in text.split(",")))


def length_of(text: str, option: str) -> int:
    """Return one count such as `4k`. Raises UsageError that names the option."""
    match = COUNT.fullmatch(text.strip())
    count = int(match[1]) * FACTORS[match[2]] if match else 0
    if not 64 <= count <= MOST:
        wanted = f"a count of tokens from 64 to {MOST}, such as 512, 4k or 1M"
        raise UsageError(Problem(option, repr(text), wanted, f"{option} 4k"))
    return count
