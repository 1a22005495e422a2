"""docs/launch.md: its tables are what the code does."""

import re
from pathlib import Path

from tests.line.test_launch import Rack
from tests.serving import ROOT
from tetraspark.fabric.nccl_log import nccl_causes
from tetraspark.line.engine_causes import CAUSES, cause_of
from tetraspark.site.startup import Startup

PAGE = (ROOT / "docs" / "launch.md").read_text()
ROWS = re.findall(r"(?m)^\| ([^|`]+) \| (`.+) \|$", PAGE.split("## Error texts")[1])


def test_the_page_lists_every_cause_in_the_order_of_the_search() -> None:
    assert [name for name, _ in ROWS] == [one.name for one in (*nccl_causes("ring"), *CAUSES)]


def test_the_texts_of_the_page_have_the_cause_of_their_row() -> None:
    for name, texts in ROWS:
        quoted = [text.replace("…", "error") for text in re.findall(r"`([^`]+)`", texts)]
        words = "\n".join(quoted) if name == "trees on a ring" else quoted[0]
        found = cause_of(words, "ring")
        assert found is not None, name
        assert found.name == name


def test_the_page_names_every_variable_and_key(tmp_path: Path) -> None:
    env = Rack(tmp_path).resolve()[0].env
    assert all(f"`{name}" in PAGE for name in env)
    assert all(f"startup.{key}" in PAGE for key in Startup.model_fields)
