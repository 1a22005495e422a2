"""A right answer to every task of code."""


def _fenced(text: str) -> str:
    return f"Here is the function:\n\n```python\n{text.strip()}\n```\nIt does what you ask."


CODE = {
    "CODE.001": "def add(a, b):\n    return a + b",
    "CODE.002": "def larger(a, b):\n    return a if a > b else b",
    "CODE.003": "def is_even(a):\n    return a % 2 == 0",
    "CODE.004": "def reverse(items):\n    return items[::-1]",
    "CODE.005": "def count_even(items):\n    return sum(one % 2 == 0 for one in items)",
    "CODE.006": "import math\n\ndef factorial(n):\n    return math.factorial(n)",
    "CODE.007": "largest = max",
    "CODE.008": "total = sum",
    "CODE.009": """
def is_palindrome(text):
    kept = [one.lower() for one in text if one.isalnum()]
    return kept == kept[::-1]
""",
    "CODE.010": """
from itertools import groupby

def run_lengths(text):
    return [(one, len(list(run))) for one, run in groupby(text)]
""",
    "CODE.011": """
def balanced(text):
    pairs, opened = {")": "(", "]": "[", "}": "{"}, []
    for one in text:
        if one in "([{":
            opened.append(one)
        elif one in pairs and (not opened or opened.pop() != pairs[one]):
            return False
    return not opened
""",
    "CODE.012": """
import re

def seconds(text):
    match = re.fullmatch(r"(?:(\\d+)h)?(?:(\\d+)m)?(?:(\\d+)s)?", text)
    if not text or not match:
        raise ValueError(text)
    hours, minutes, rest = (int(one or 0) for one in match.groups())
    return 3600 * hours + 60 * minutes + rest
""",
    "CODE.013": """
def shift(text, by):
    def one(letter):
        if not (letter.isascii() and letter.isalpha()):
            return letter
        first = ord("A" if letter.isupper() else "a")
        return chr((ord(letter) - first + by) % 26 + first)

    return "".join(map(one, text))
""",
    "CODE.014": """
from collections import Counter

def most_common(text, count):
    found = Counter(text.lower().split())
    return sorted(found, key=lambda word: (-found[word], word))[:count]
""",
    "CODE.015": """
def prime_factors(n):
    found, factor = [], 2
    while factor * factor <= n:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 1
    return found + [n] * (n > 1)
""",
    "CODE.016": """
ROMAN = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
         (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]

def to_roman(n):
    if not 1 <= n <= 3999:
        raise ValueError(n)
    text = ""
    for value, sign in ROMAN:
        text += sign * (n // value)
        n %= value
    return text
""",
    "CODE.017": """
def in_base(n, base):
    text = ""
    while n:
        n, digit = divmod(n, base)
        text = "0123456789abcdef"[digit] + text
    return text or "0"
""",
    "CODE.018": """
def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
""",
    "CODE.019": """
def flatten(items):
    found = []
    for one in items:
        found += flatten(one) if isinstance(one, list) else [one]
    return found
""",
    "CODE.020": """
def merge(ranges):
    found = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
""",
    "CODE.021": """
def transpose(rows):
    return [list(column) for column in zip(*rows, strict=True)]
""",
    "CODE.022": """
def spiral(rows):
    found = []
    while rows:
        found += rows[0]
        rows = [list(column) for column in zip(*rows[1:])][::-1]
    return found
""",
    "CODE.023": """
def order(needs):
    left = {name: set(before) for name, before in needs.items()}
    for before in needs.values():
        for name in before:
            left.setdefault(name, set())
    found = []
    while left:
        ready = sorted(name for name, before in left.items() if not before)
        if not ready:
            raise ValueError("a circle")
        found.append(ready[0])
        del left[ready[0]]
        for before in left.values():
            before.discard(ready[0])
    return found
""",
    "CODE.024": """
class Cache:
    def __init__(self, size):
        self.size, self.entries = size, {}

    def put(self, key, value):
        self.entries.pop(key, None)
        self.entries[key] = value
        if len(self.entries) > self.size:
            del self.entries[next(iter(self.entries))]

    def get(self, key):
        if key not in self.entries:
            return None
        self.put(key, self.entries[key])
        return self.entries[key]
""",
    "CODE.025": """
import re

def calculate(text):
    if re.sub(r"\\d+|[-+*()]|\\s", "", text):
        raise ValueError(text)
    tokens = re.findall(r"\\d+|[-+*()]", text)

    def take():
        if not tokens:
            raise ValueError(text)
        return tokens.pop(0)

    def factor():
        token = take()
        if token == "-":
            return -factor()
        if token == "(":
            value = terms()
            if take() != ")":
                raise ValueError(text)
            return value
        return int(token)

    def product():
        value = factor()
        while tokens and tokens[0] == "*":
            take()
            value *= factor()
        return value

    def terms():
        value = product()
        while tokens and tokens[0] in "+-":
            value = value + product() if take() == "+" else value - product()
        return value

    value = terms()
    if tokens:
        raise ValueError(text)
    return value
""",
}
CODE = {name: text if name < "CODE.009" else _fenced(text) for name, text in CODE.items()}
