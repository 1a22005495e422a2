"""The page on the site file: every key is in its section's table, every example is true."""

import re
from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.site.explain import field_at, schema_keys
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

PAGE = (Path(__file__).parents[2] / "docs" / "site-file.md").read_text()
SECTIONS = dict(re.findall(r"(?ms)^### (.+?)\n(.*?)(?=^##|\Z)", PAGE))
BLOCKS = re.findall(r"(?ms)^```toml(.*?)\n(.*?)^```", PAGE)
LEAVES = [path for path in schema_keys() if all(path != other[: len(path)] or path == other
          for other in schema_keys())]  # fmt: skip


def heading(path: KeyPath) -> str:
    section = dotted(path[:-1])
    if not section:
        return "`[env]`" if path == ("env",) else "Top level"
    return "`[[nodes]]`" if section == "nodes[0]" else f"`[{section}]`"


@pytest.mark.parametrize("path", LEAVES, ids=dotted)
def test_every_key_is_described_in_its_section(path: KeyPath) -> None:
    text = SECTIONS[heading(path)]
    if path == ("env",):
        assert text.lstrip().startswith("`env` is a table")
        return
    row = next(row for row in text.split("\n") if row.startswith(f"| `{path[-1]}` |"))
    field = field_at(path)
    assert field is not None
    _, _, kind, default, meaning, user, _ = (cell.strip() for cell in row.split("|"))
    assert kind and user and meaning == field.description
    if isinstance(field.default, bool):
        assert default == f"`{str(field.default).lower()}`"
    elif isinstance(field.default, (str, int, float)):
        assert f"`{field.default}`" in default
    assert field.is_required() == (default == "required")


def test_the_page_names_no_key_that_does_not_exist() -> None:
    rows = {
        (name, key)
        for name, text in SECTIONS.items()
        for key in re.findall(r"(?m)^\| `(\w+)` \|", text)
    }
    assert rows == {(heading(path), str(path[-1])) for path in LEAVES if path != ("env",)}


@pytest.mark.parametrize(("caption", "text"), BLOCKS)
def test_every_example_loads_or_fails_as_it_says(caption: str, text: str) -> None:
    source = decode_source(Path("mine.toml"), text.encode())
    if not caption:
        assert load_source(source).warnings == ()
        return
    with pytest.raises(UsageError, match=re.escape(caption.removeprefix(" fails: "))) as caught:
        load_source(source)
    shown = re.findall(r"(?m)^mine\.toml:.*$", PAGE)
    if "extra_args" in text:
        assert [str(problem) for problem in caught.value.problems] == shown


def test_the_page_has_examples() -> None:
    assert [bool(caption) for caption, _ in BLOCKS] == [False, True, True]
