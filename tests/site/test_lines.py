"""The line scanner against tomllib, on documents in every spelling TOML has."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.lines import key_lines

BARE = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
QUOTED = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=5).filter(
    lambda text: "\x7f" not in text and all(not 0x80 <= ord(c) < 0xA0 for c in text)
)
KEY = st.one_of(
    BARE,
    QUOTED.map(lambda text: json.dumps(text, ensure_ascii=False)),
    QUOTED.filter(lambda text: "'" not in text).map(lambda text: f"'{text}'"),
)
DOT = st.sampled_from([".", " . ", "\t."])
KEYS = st.lists(KEY, min_size=1, max_size=3).flatmap(
    lambda parts: DOT.map(lambda dot: dot.join(parts))
)
COMMENT = st.sampled_from(["", " # a = 1 [x] {y", "\t#\"'"])
GAP = st.sampled_from(["", " ", "\n", "\n # c]\n\t", "  \n"])
STRINGS = [
    '"a # b"', "'c\\'", '"\\"]="', '"""x\ny = 1\n"""', "'''\n[t]\n'''", '"""q"""""', "''''q'''''",
    '"""\\\n  z"""', '""', "''",
]  # fmt: skip
SCALARS = ["1", "-0x0", "3.5e3", "true", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "inf"]


def array(items: list[str], gap: str) -> str:
    return "[" + gap + f"{gap},{gap}".join(items) + gap + "]"


def inline(pairs: list[tuple[str, str]]) -> str:
    return "{ " + ", ".join(f"{key} = {value}" for key, value in pairs) + " }"


VALUE = st.recursive(
    st.sampled_from(STRINGS + SCALARS),
    lambda inner: st.one_of(
        st.builds(array, st.lists(inner, max_size=3), GAP),
        st.builds(inline, st.lists(st.tuples(KEYS, inner), max_size=3)),
    ),
    max_leaves=6,
)
PAIR = st.builds(lambda key, value, end: f"{key} = {value}{end}", KEYS, VALUE, COMMENT)
HEADER = st.builds(lambda key, end: f"[{key}]{end}", KEYS, COMMENT)
ARRAY_HEADER = st.builds(lambda key, end: f"[[{key}]]{end}", KEYS, COMMENT)
STATEMENT = st.one_of(PAIR, PAIR, HEADER, ARRAY_HEADER, st.sampled_from(["", "# x = 1"]))


def paths(value: Any, above: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = []
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        found += [(*above, key), *paths(inner, (*above, key))]
    return found


def valid_only(statements: list[str]) -> str:
    """Keep the statements that leave the document valid, so that few examples are wasted."""
    kept: list[str] = []
    for statement in statements:
        try:
            tomllib.loads("\n".join([*kept, statement]))
        except ValueError:
            continue
        kept.append(statement)
    return "\n".join(kept)


@settings(max_examples=300, deadline=None)
@given(st.lists(STATEMENT, min_size=1, max_size=8).map(valid_only), st.sampled_from(["", "\n"]))
def test_every_key_has_the_line_it_is_written_on(text: str, end: str) -> None:
    document = tomllib.loads(text + end)
    assume(document)
    found = key_lines(text + end).lines
    rows = text.split("\n")
    assert set(found) == set(paths(document))
    for path, line in found.items():
        key = path[-1]
        if isinstance(key, str):
            row = rows[line - 1]
            spellings = (key, json.dumps(key, ensure_ascii=False)[1:-1])
            assert any(spelling in row for spelling in spellings), (dotted(path), row)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab=[]{}\"'\\#.,\n \t1"), max_size=40))
def test_invalid_text_ends_in_a_value_error_or_a_map(text: str) -> None:
    try:
        lines = key_lines(text).lines
    except ValueError:
        return
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def test_lines_of_one_document_of_each_kind() -> None:
    text = (
        'a.b = 1\n[[n]]\nx = """\n\n"""\ny = [\n 1, {z = 2},\n]\n[n.sub]\nk = 1\n[[n]]\n"q.r" = 2'
    )
    found = {dotted(path): line for path, line in key_lines(text).lines.items()}
    assert found == {
        "a": 1, "a.b": 1, "n": 2, "n[0]": 2, "n[0].x": 3, "n[0].y": 6, "n[0].y[0]": 7,
        "n[0].y[1]": 7, "n[0].y[1].z": 7, "n[0].sub": 9, "n[0].sub.k": 10, "n[1]": 11,
        'n[1]."q.r"': 12,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "first", "again"),
    [("a = 1\nb = 2\na = 3", 1, 3), ("[t]\nx = 1\n[u]\n[t]\n", 1, 4), ("a.b = 1\n\na.b = 2", 1, 3)],
)
def test_a_repeated_key_is_reported_with_both_lines(text: str, first: int, again: int) -> None:
    (repeat,) = key_lines(text).repeats
    assert (repeat.first, repeat.again) == (first, again)
