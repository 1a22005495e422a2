"""Real text to fill prompts with, none of it twice: the documentation and library of Python.

Every machine that runs tetraspark has it (Python Software Foundation License). A file of the
user's own can stand in its place.
"""

import hashlib
import random
import re
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tetraspark.errors import Problem, UsageError
from tetraspark.site.source import read_text

FILLER_SHARE = 0.01
"""Fewer different words than this share of all words: filler, whose speed is not that of text."""
FILLER = "the "
WORD = re.compile(r"\w+|[^\w\s]")
PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Corpus:
    """Paragraphs to draw from; `name` says which, with the hash of the whole."""

    name: str
    paragraphs: tuple[str, ...] = field(repr=False)

    def text(self, characters: int, seed: int) -> str:
        """Return about so many characters of paragraphs in an order of the seed's own.

        The first words are the seed's, so that no two texts share a beginning. A text longer than
        the corpus goes on with it in another order, each paragraph then under a number of its own.
        """
        draw = random.Random(seed)
        pieces = [f"Notes {draw.getrandbits(64):016x}, part {seed}."]
        length, pass_number = len(pieces[0]), 0
        while length < characters:
            order = draw.sample(range(len(self.paragraphs)), len(self.paragraphs))
            for index in order:
                text = self.paragraphs[index]
                pieces.append(f"({pass_number}.{index}) {text}" if pass_number else text)
                length += len(pieces[-1]) + 2
                if length >= characters:
                    break
            pass_number += 1
        return "\n\n".join(pieces)[:characters]


def filler(characters: int, seed: int) -> str:
    """Return one word over and over, behind a beginning of the seed's own."""
    head = f"Notes {random.Random(seed).getrandbits(64):016x}. "
    return (head + FILLER * (characters // len(FILLER) + 1))[:characters]


def is_filler(text: str) -> bool:
    """Tell whether a text has too few different words to be called one."""
    words = WORD.findall(text)
    return not words or len(set(words)) / len(words) < FILLER_SHARE


def paragraphs_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of a text that are more than a heading, each once."""
    found = (part.strip() for part in PARAGRAPH.split(text))
    return tuple(dict.fromkeys(part for part in found if len(part) >= 80))


def library() -> Corpus:
    """Return the text of this Python: its language reference, then its library's sources."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [folder / "pydoc_data" / "topics.py", *sorted(folder.glob("*.py"))]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()]
    return _corpus(f"Python {sysconfig.get_python_version()} documentation and library", texts)


def of_file(file: Path) -> Corpus:
    """Return the text of a file. Raises UsageError when it cannot be read or has too little."""
    text = read_text(file, "text in UTF-8", "another --text")
    if is_filler(text) or not paragraphs_of(text):
        seen = "no paragraphs of at least 80 characters, or one word over and over"
        raise UsageError(Problem(str(file), seen, "real text", "another --text"))
    return _corpus(file.name, [text])


def corpus_of(file: Path | None) -> Corpus:
    """Return the text of a file of the user's own, or that of this Python without one."""
    return library() if file is None else of_file(file)


def _corpus(name: str, texts: Sequence[str]) -> Corpus:
    whole = "\n\n".join(text.replace("\\n", "\n") for text in texts)
    digest = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return Corpus(f"{name} ({digest})", paragraphs_of(whole))
