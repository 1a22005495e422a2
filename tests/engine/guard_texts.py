"""Texts that a guard must leave alone, loops that it must end, and two ways to make tokens."""

import base64
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

ROOT = Path(__file__).parents[2]
Tokens = tuple[list[int], frozenset[int]]


@cache
def _tiny() -> Tokenizer:
    return Tokenizer.from_file(str(ROOT / "models" / "tiny" / "tokenizer.json"))


def fine(text: str) -> Tokens:
    """Tokens of the bundled model, whose vocabulary is small: many tokens, short ones."""
    tiny = _tiny()
    ids = tiny.encode(text, add_special_tokens=False).ids
    return ids, frozenset(i for i in set(ids) if "\n" in tiny.decode([i], False))


def coarse(text: str) -> Tokens:
    """Words, numbers, runs of spaces and of one sign, as a large vocabulary has them."""
    pieces = [m.group() for m in re.finditer(r"\n+|[ \t]+|\w{1,12}|([^\w\s])\1{0,15}", text)]
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return [numbers[piece] for piece in pieces], frozenset(
        number for piece, number in numbers.items() if "\n" in piece
    )


TOKENIZERS: dict[str, Callable[[str], Tokens]] = {"fine": fine, "coarse": coarse}

_HEAD = "| node | device | state |\n|---|---|---|\n"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")

TEXTS = {
    "seven equal rows": _HEAD + "| a | b | ok |\n" * 7 + "That is all of them.\n",
    "seven equal wide rows": _HEAD + "| spark1 | rocep1s0f0 | ACTIVE, LINK_UP, 200 Gb/s |\n" * 7,
    "twenty equal short rows": "| a | b |\n" * 20,
    "rows that count": _HEAD + "".join(f"| node{i} | dev{i % 4} | up |\n" for i in range(200)),
    "nested code": "\n".join(
        f"{'    ' * depth}if a{depth} > {depth}:\n{'    ' * (depth + 1)}b({depth})"
        for depth in range(14)
    ),
    "closing brackets": "{" * 12 + "\n" + "}\n" * 12 + ")" * 30 + "\n",
    "numbers": "\n".join(str(number) for number in range(1, 600)),
    "numbers in a row": ", ".join(str(number) for number in range(1, 900)),
    "a matrix of zeros": "zeros = [\n" + "    [0, 0, 0, 0, 0, 0, 0, 0],\n" * 8 + "]\n",
    "a row of zeros": "[" + ", ".join(["0"] * 64) + "]",
    "hex": "\n".join(
        " ".join(f"{(i * 16 + j) * 37 % 256:02x}" for j in range(16)) for i in range(40)
    ),
    "base64": base64.encodebytes(bytes((i * i * 31 + 7) % 251 for i in range(3000))).decode(),
    "json": json.dumps([{"id": i, "name": f"user{i}", "tags": []} for i in range(60)], indent=2),
    "four equal small objects": json.dumps([{"x": 0, "y": 0}] * 4, indent=2),
    "markdown list": "".join(f"- [ ] step {i}: check `node{i}`\n" for i in range(120)),
    "a poem with a refrain": "".join(
        f"Verse {i} tells another story of {day}\nand ends as each verse ends:\n"
        "Row, row, row your boat, gently down the stream,\n"
        "Merrily, merrily, merrily, merrily, life is but a dream.\n\n"
        for i, day in enumerate(_DAYS * 2)
    ),
    "blank lines": "a\n\n\n\n\n\nb\n\n\n\nc\n" + "\n" * 12 + "d\n",
    "spaces": " " * 200 + "x" + " " * 40 + "\n\t\t\t\t\t\t\t\ty\n",
    "tests that look alike": "".join(
        f"def test_{word}():\n    result = run({word!r})\n    assert result.returncode == 0\n\n\n"
        for word in ("serve", "stop", "plan", "status", "logs", "smoke", "doctor", "bundle")
    ),
    "svg": "".join(
        f'<rect x="{i * 7 % 640}" y="{i * 13 % 480}" width="8" height="8" fill="#0{i % 10}c"/>\n'
        for i in range(150)
    ),
    "emphasis": "No" + "o" * 60 + "! Ha" + "ha" * 20 + "!!!!!!!!!!!!!!!!\n",
    "a real page": (ROOT / "docs" / "site-file.md").read_text(),
    "real code": (ROOT / "src" / "tetraspark" / "site" / "rules.py").read_text(),
    "real json": (ROOT / "models" / "tiny" / "training.json").read_text()[:20_000],
}

RUNS = {
    "a long rule": "# Title\n" + "-" * 79 + "\n" + "=" * 79 + "\ntext\n",
    "base64 of zeros": base64.encodebytes(bytes(120)).decode(),
}
"""Long runs of one sign, which a large vocabulary has in one token and a small one has not."""

LOOPS = {
    "one word": "word " * 2000,
    "one sign": "! " * 3000,
    "blank lines for ever": "Well.\n" + "\n " * 3000,
    "a sentence": "Wait, let me think about this again and check the first step once more. " * 200,
    "a paragraph": (
        "So the answer must be the number of ranks. But the ranks were four before the ring was "
        "closed, and the fifth had left.\n\nTherefore I should count them again, from the head.\n\n"
    )
    * 100,
    "a line": "I should check the cable between the second and the third node.\n" * 200,
    "a list item": "- check the link\n" * 600,
    "a table row": "| a | b |\n" * 800,
    "a function": "def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n" * 200,
    "zeros": "0, " * 4000,
    "css": "@keyframes roll { from { left: 0 } to { left: 100% } }\n.car { animation: roll }\n"
    * 150,
    "after an answer": "The answer is 42. It follows from the sum.\n" + "Done. " * 2000,
}
