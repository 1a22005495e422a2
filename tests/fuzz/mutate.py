"""Texts and bytes that a parser may meet: anything, and real ones with something done to them."""

import re
from collections.abc import Iterator

from hypothesis import strategies as st

ODD = (
    "\x00", "\n", "\r\n", "\t", " ", "\u2028", "\ufffd", "\ud800", "é", "٣", "²", "-", "-1",
    "1" * 5000, "0x",
    "1e999", "NaN", "Infinity", "null", "[]", "{}", '"', "'", "\\", "[" * 2000, "(",
    ")", "{", "$(", "%s", ":", ",",
    "0000-00-00", "9999-99-99 99:99:99", "/", "..", "=", "#", "\x1b[31m", "true",
)  # fmt: skip
"""What has broken parsers before: among them digits that are none, numbers without end, depth."""


NUMBERS = ("", "1" * 5000, "²", "-1", "0", "1e999", "9" * 30)
VALUES = ("null", "1", "[]", "{}", '""', "true", "1.5", "NaN", "[" * 2000)
WHOLE = (
    "",
    "null",
    "1",
    '"a"',
    "[]",
    "[[]]",
    "[{}]",
    "{}",
    "[" * 2000,
    '{"a":' * 2000,
    "\ud800",
    "\x00",
)


def hazards(seeds: tuple[str, ...], places: int) -> Iterator[str]:
    """Yield what is always tried: odd whole texts, and odd values in the places of real ones, in
    about so many seeds and so many places of each.
    """
    yield from WHOLE
    for seed in seeds[:: max(1, len(seeds) // places)]:
        for pattern, values in ((r"\d+", NUMBERS), (r'"[^"\n]*"|\[\]|\{\}|null|true', VALUES)):
            found = list(re.finditer(pattern, seed))
            for match in found[:: max(1, len(found) // places)]:
                for value in values:
                    yield seed[: match.start()] + value + seed[match.end() :]


def texts(seeds: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Anything, or one of the seeds with a few changes."""
    anything = st.text(max_size=200) | st.lists(st.sampled_from(ODD), max_size=6).map("".join)
    return anything | mutated(seeds) if seeds else anything


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[str, ...]) -> str:
    """Return a seed with one to four changes: cut, doubled, moved, or something odd put in."""
    text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        first, second = (draw(st.integers(0, len(text))) for _ in range(2))
        begin, end = min(first, second), max(first, second)
        if draw(st.booleans()):
            end = min(end, begin + 4)
        kind = draw(st.sampled_from(("cut", "drop", "double", "odd", "swap", "digit", "splice")))
        if kind == "cut":
            text = text[:begin]
        elif kind == "drop":
            text = text[:begin] + text[end:]
        elif kind == "double":
            text = text[:end] + text[begin:end] + text[end:]
        elif kind == "odd":
            text = text[:begin] + draw(st.sampled_from(ODD)) + text[end:]
        elif kind == "swap":
            text = text[:begin] + text[begin:end][::-1] + text[end:]
        elif kind == "digit":
            text = text[:begin] + text[begin:].translate(_DIGITS)
        else:
            text = text[:begin] + draw(st.sampled_from(seeds))[begin:]
    return text


_DIGITS = str.maketrans("0123456789", "9876543210")


def data(seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Any bytes, or one of the seeds with bits flipped, cut, or made longer."""
    return st.binary(max_size=300) | damaged(seeds)


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """Return a seed that is certain to differ from it."""
    seed = draw(st.sampled_from(seeds))
    kind = draw(st.sampled_from(("cut", "flip", "longer", "foreign", "drop")))
    at = draw(st.integers(0, len(seed) - 1))
    if kind == "cut":
        return seed[:at]
    if kind == "flip":
        return seed[:at] + bytes([seed[at] ^ (1 << draw(st.integers(0, 7)))]) + seed[at + 1 :]
    if kind == "longer":
        return seed + draw(st.binary(min_size=1, max_size=64)) * draw(st.sampled_from((1, 20_000)))
    if kind == "drop":
        return seed[:at] + seed[at + 1 :]
    return seed[:at] + draw(st.binary(min_size=len(seed) - at + 1, max_size=len(seed) - at + 9))
